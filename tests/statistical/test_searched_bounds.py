"""An audit of a sum whose bound is searched, and of a twin that pays for the sum alone."""

from functools import cache

import pyarrow as pa
import pytest

import hushed as hs
from hushed.tables._release import plan_query

pytestmark = pytest.mark.slow

QUERY = hs.table(pa.table({"x": [1]})).sum("x", low=0, high="search")
PAIRS = [([8] * 6, [8] * 7), ([3] * 6, [3] * 6 + [64]), ([1], [1, 1])]


@cache
def planned(epsilon, bound=None):
    """Plan of the whole, or of what follows when a bound is found."""
    query = QUERY.query if bound is None else QUERY.query.with_bounds({("sum_x", "high"): bound})
    return plan_query(query, epsilon=epsilon, delta=0.0, noise_name="laplace")


def drawn(rows, epsilon):
    """Bound and noisy sum of a list of whole numbers, as a release draws them."""
    (part,) = planned(epsilon).searches
    counts = [0] * part.search.feature.bins
    for row in rows:
        counts[sum(row > each for each in part.search.bounds)] += 1
    bound = part.draw(counts)
    (total,) = planned(epsilon, bound).parts
    steps = [round(min(row, bound) / total.measurement.step) for row in rows]
    (noisy,) = total.noise.add_to([sum(steps)])
    return [bound, noisy * total.measurement.step]


def audited(draw, claim):
    """Run an audit; the false alarm is 1e-6.

    Of 8,000 runs it certified 1.31 of the twin with a standard error of 0.085, too near to 1.
    """
    promise = hs.Guarantee(epsilon=claim, neighbours="add-remove")
    return hs.audit(draw, PAIRS, claim=promise, samples=16_000, workers=1, confidence=0.999999)


def test_no_audit_refutes_the_search_and_the_sum():
    """Both outputs together, at the epsilon of the whole."""
    report = audited(lambda rows: drawn(rows, 1.0), 1.0)
    assert report.verdict == "not refuted", report.explain()


def test_an_audit_refutes_a_claim_that_leaves_the_search_out():
    """The noise of three times the epsilon that is claimed."""
    report = audited(lambda rows: drawn(rows, 3.0), 1.0)
    assert report.verdict == "violated", report.explain()
