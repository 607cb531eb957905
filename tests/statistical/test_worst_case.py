"""Audits of the mechanisms that hold for every table, and of twins that are broken on purpose."""

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed import noise, zoo

pytestmark = pytest.mark.slow

MEDIAN = hs.statistics.median(rows=5, low=0, high=9)
PAIRS = [([0, 0, 2, 3, 9], [0, 2, 2, 3, 9]), ([2, 2, 2, 2, 9], [2, 2, 2, 9, 9])]
PAIRS += [([0, 0, 0, 9, 9], [0, 0, 9, 9, 9])]
CLAIM = hs.Guarantee(epsilon=1.0)
KEPT = {
    "inverse": hs.InverseSensitivity(MEDIAN, epsilon=1.0, candidates=[0, 9]),
    "lomax": hs.Smooth(MEDIAN, epsilon=1.0),
    "t2": hs.Smooth(MEDIAN, epsilon=1.0, noise="t2"),
}


def audited(draw, samples):
    """Run an audit on the values; the false alarm is 1e-6.

    Of 4,000 runs the bound for a third of the noise was 1.76, and for the local sensitivity 5.3;
    that for a forgotten factor was 1.16 and is nearer to its loss in 8,000: each is seen with .999.
    """
    pairs = [tuple(np.array(each, dtype=float) for each in pair) for pair in PAIRS]
    return hs.audit(draw, pairs, claim=CLAIM, samples=samples, workers=1, confidence=0.999999)


def assert_told_apart(draw):
    """Some pair of tables is told apart at all, so that there is something to refute.

    By runs of their own: now and then an audit chooses another pair, on which t2 differs little.
    """
    found = []
    for pair in PAIRS:
        tables = [np.array(each, dtype=float) for each in pair]
        one, other = ([float(draw(table)) for _ in range(2_000)] for table in tables)
        found.append(stats.ks_2samp(one, other, method="asymp").pvalue)
    assert min(found) < 1e-6, found


@pytest.mark.parametrize("name", KEPT)
def test_no_audit_refutes_a_right_mechanism(name):
    """Bits of the doubles may be looked at, too."""
    report = audited(KEPT[name].draw, 8_000 if name == "inverse" else 4_000)
    assert report.verdict == "not refuted", report.explain()
    assert_told_apart(KEPT[name].draw)


def too_little(rows):
    """Noise of a third of the scale."""
    right = KEPT["lomax"]
    scale = right.factor * MEDIAN.smooth_sensitivity(rows, right.beta) / 3
    return noise.add_lomax(MEDIAN.value(rows), scale=scale, tail=5, low=0, high=9)


def local_scale(rows):
    """Noise in proportion to the local sensitivity, as if it did not leak."""
    scale = KEPT["t2"].factor * MEDIAN.local_sensitivity(rows) or 1e-300
    return noise.add_student(MEDIAN.value(rows), scale=scale, low=0, high=9)


def without_the_factor_2(rows):
    """An exponential mechanism that forgets that some lengths rise while others fall."""
    lengths = MEDIAN.lengths(rows, [0, 2, 3, 5, 9])
    return noise.select(-3.0 * lengths, width=2.0, epsilon=1.0)


@pytest.mark.parametrize("draw", [too_little, local_scale, without_the_factor_2])
def test_an_audit_refutes_a_broken_twin(draw):
    """With the same pairs, samples and confidence."""
    report = audited(draw, 8_000 if draw is without_the_factor_2 else 4_000)
    assert report.verdict == "violated", report.explain()


# Tests of a distance: a refusal is None, which the auditor sees like any other output.
SLACK = hs.Guarantee(epsilon=1.0, delta=0.3)
TESTED = hs.ProposeTest(MEDIAN, bound=0.2, epsilon=1.0, delta=0.3)
MODE = hs.statistics.mode(["a", "b"], rows=12)
STABLE = hs.StableMode(MODE, epsilon=1.0, delta=0.3)
GROUPS = [(["a"] * k + ["b"] * (12 - k), ["a"] * (k - 1) + ["b"] * (13 - k)) for k in (6, 9, 12)]


def of_medians(draw):
    """Audit on the tables of numbers."""
    pairs = [tuple(np.array(each, dtype=float) for each in pair) for pair in PAIRS]
    return hs.audit(draw, pairs, claim=SLACK, samples=4_000, workers=1, confidence=0.999999)


def of_modes(draw):
    """Audit on the tables of categories, coded as numbers of a's."""

    def coded(rows):
        return draw(["a"] * int(rows[0]) + ["b"] * (12 - int(rows[0])))

    pairs = [tuple(np.array([float(t.count("a"))]) for t in pair) for pair in GROUPS]
    return hs.audit(
        coded,
        pairs,
        claim=SLACK,
        samples=4_000,
        workers=1,
        confidence=0.999999,
    )


def without_distance(rows):
    """A test of the local sensitivity itself, noisy or not: one row decides."""
    if MEDIAN.local_sensitivity(rows) > 6.5:
        return None
    return float(MEDIAN.value(rows)) + float(noise.discrete_laplace(20))


def threshold_too_low(rows):
    """The right test with a threshold that is two rows too low."""
    distance = MODE.distance(rows) + int(noise.discrete_laplace(1))
    return MODE.value(rows) if distance > STABLE.threshold - 2 else None


def test_no_audit_refutes_a_test_of_the_distance():
    """Answers, refusals and categories."""
    medians, modes = of_medians(TESTED.draw), of_modes(STABLE.draw)
    for report in (medians, modes):
        assert report.verdict == "not refuted", report.explain()
    seen = np.array(modes.outcomes)  # the tables are told apart at all
    assert stats.chi2_contingency(seen[:, seen.any(axis=0)]).pvalue < 1e-6


def test_an_audit_refutes_its_broken_twins():
    """With the same pairs, samples and confidence."""
    for report in (of_medians(without_distance), of_modes(threshold_too_low)):
        assert report.verdict == "violated", report.explain()


MISTAKES = (
    "median: noise scaled to the local sensitivity",
    "median: smoothing without its brackets",
    "sparse vector: noise of monotone answers",
    "propose-test-release: test without the distance",
    "blocks: a function that keeps what it has seen",
    "posterior: a draw without tempering",
)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        *((f"{name} (faulty)", f"{name} (corrected)") for name in MISTAKES),
        ("noisy max value, laplace", "noisy max index, laplace"),
    ],
)
def test_an_audit_tells_the_mistake_from_its_correction(wrong, right):
    """Each published mistake of worst-case mechanisms that the zoo holds, beside its twin."""
    for name, verdict in ((wrong, "violated"), (right, "not refuted")):
        specimen = zoo.find(name, 0.5)
        report = hs.audit(
            specimen.mechanism,
            specimen.pairs,
            claim=specimen.claim,
            relation=specimen.claim.neighbours if specimen.relation == "one-row" else "answers",
            samples=200_000,
            confidence=0.999999,
            batch=True,
            bits=False,
            workers=1,
        )
        assert report.verdict == verdict, report.explain()
