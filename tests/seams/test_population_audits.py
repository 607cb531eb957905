"""An audit of drawn pairs judges the pairs that a sampled promise is about, and says which."""

import dataclasses
import json

import numpy as np
import pytest

import hushed as hs
from hushed.auditing import audit
from hushed.auditing._population import draw_pairs
from hushed.errors import BadRows, ParameterError
from hushed.releasing import Certificate

UNIT = hs.populations.Uniform(low=0, high=1)


def noisy(function, scale):
    """Laplace noise of a scale; audits of it judge values alone."""
    return lambda rows, rng, size: function(rows) + rng.laplace(scale=scale, size=size)


def first_counts(rows):
    return rows[0] + rows[1:].mean()


def all_but_first(rows):
    return rows[1:].sum()


def all_but_last(rows):
    return rows[:-1].sum()


def judged(function, scale, claim, *, rows, count=40, samples=80_000, **options):
    """Verdict at confidence 0.95, which bounds the rate of false accusations of a right release."""
    return audit(
        noisy(function, scale),
        hs.PopulationPairs(population=UNIT, rows=rows, count=count, **options),
        claim=claim,
        samples=samples,
        batch=True,
        bits=False,
        workers=1,
    )


@pytest.mark.slow
def test_a_right_release_is_not_accused():
    """Noise that only the first of a hundred rows can outdo keeps gamma = 0.05.

    Any other row moves the answer by 1/99 at most, a fifth of the scale.
    """
    claim = hs.Guarantee(epsilon=1, gamma=0.05)
    found = judged(first_counts, 0.05, claim, rows=100)
    assert found.verdict == "not refuted"
    assert found.population.share_low <= 0.01


@pytest.mark.parametrize("function", [all_but_first, all_but_last])
@pytest.mark.parametrize(
    "neighbours", ["replace-one", pytest.param("add-remove", marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_a_violation_for_all_people_but_one_is_caught(function, neighbours):
    """Nearly no noise for 19 of 20 rows; which row goes free makes no difference."""
    claim = hs.Guarantee(epsilon=1, gamma=0.2, neighbours=neighbours)
    found = judged(function, 0.02, claim, rows=20)
    assert found.verdict == "violated"
    assert 0.2 < found.population.share_low <= 0.95


@pytest.mark.slow
def test_a_row_that_is_declared_to_stand_for_all_is_the_last():
    """With symmetric=True the last row changes, as in the sampling of a sensitivity."""
    claim = hs.Guarantee(epsilon=1, gamma=0.2)
    blind = judged(all_but_last, 0.02, claim, rows=20, symmetric=True)
    assert blind.verdict == "not refuted"
    assert "the last row, for the order of rows was declared to have no effect" in blind.explain()
    assert json.loads(blind.to_json())["population"]["position"] == "last"
    assert judged(all_but_first, 0.02, claim, rows=20, symmetric=True).verdict == "violated"


@pytest.mark.slow
def test_the_report_names_what_was_done():
    """Each pair names its row, the report how rows were chosen."""
    claim = hs.Guarantee(epsilon=1, gamma=0.2, neighbours="add-remove")
    found = judged(np.sum, 1.5, claim, rows=20)
    assert "In each pair a row at a random position is taken away." in found.explain()
    assert all(name.endswith("of 20 taken away)") for name in found.tried)
    assert len({name.partition("(")[2] for name in found.tried}) > 5
    assert json.loads(found.to_json())["population"]["position"] == "random"


@pytest.mark.parametrize(
    ("other", "match"),
    [({"unit": "user"}, "in all rows of one user"), ({"distance": 3}, "in 3 rows")],
)
def test_a_gamma_about_other_pairs_is_not_judged(other, match):
    """Pairs that differ in one row are not the ones of which a share may fail."""
    with pytest.raises(ParameterError, match=match):
        judged(np.sum, 1.5, hs.Guarantee(epsilon=1, gamma=0.2, **other), rows=20)
    exact = hs.Guarantee(epsilon=1, **other)
    pair = ([0.0] * 3, [1.0] * 3)
    found = audit(noisy(np.sum, 1.5), [pair], claim=exact, samples=400, batch=True)
    assert match in found.explain().split(" for replace-one")[0]


def test_single_pairs_are_not_certified():
    """Each has a test of its own, so that one of many may be caught by chance: it is said apart."""
    claim = hs.Guarantee(epsilon=1, gamma=0.2)
    found = judged(np.sum, 1.5, claim, rows=20, count=12, samples=4_000)
    said = found.explain()
    caught = said.index(f"Tests of {found.population.caught} of 12 pairs")
    assert caught < said.index("Certified with confidence 0.95: the share of pairs")


@pytest.mark.parametrize("confidence", [1 - 1e-13, 1 - 2e-16])
def test_a_confidence_that_no_audit_reaches_is_refused(confidence):
    """Nothing would ever be refuted: an assertion that cannot fail."""
    naked = hs.testing.assert_private
    with pytest.raises(ParameterError, match="contradicts nothing"):
        naked(noisy(np.sum, 1e-3), [([0.0], [1.0])], claim=0.1, batch=True, confidence=confidence)
    with pytest.raises(AssertionError, match=r"confidence 0\.999999:"):
        naked(noisy(np.sum, 1e-3), [([0.0], [1.0])], claim=0.1, batch=True, confidence=1 - 1e-10)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_drawn_pairs_are_neighbours_in_every_position(neighbours, rows):
    """One row differs, every position comes up, and the row in its place was not in the table."""
    source = hs.PopulationPairs(population=UNIT, rows=rows, count=80)
    seen = set()
    for pair in draw_pairs(source, neighbours, seed=3):
        table, other = pair.rows, pair.neighbour
        if neighbours == "replace-one":
            (at,) = np.flatnonzero(table != other)
            assert other[at] not in table
        else:
            (at,) = np.flatnonzero(~np.isin(table, other))
            assert np.array_equal(np.delete(table, at), other)
        seen.add(int(at))
        assert f"(row {at + 1} of {rows} " in pair.name
    assert seen == set(range(rows))


@pytest.mark.slow
class TestMarginalGamma:
    """A gamma over sampler and pair together is not contradicted by one sampler's share."""

    @staticmethod
    def mechanism(calibration="marginal"):
        pairs = {"gamma": 0.2, "pairs": 4} if calibration == "marginal" else {"gamma": 0.2}
        sensitivity = hs.sample_sensitivity(np.sum, UNIT, rows=5, calibration=calibration, **pairs)
        return hs.Laplace(sensitivity, epsilon=1.0)

    def test_is_refused_with_a_way_out(self):
        """The certificate's claim is not judged; the same numbers in one's own name are."""
        promise = self.mechanism().guarantee
        with pytest.raises(ParameterError, match=r"marginal.*in your own numbers"):
            judged(np.sum, 1.0, promise, rows=5)
        own = hs.Guarantee(epsilon=promise.epsilon, gamma=promise.gamma)
        found = judged(np.sum, 0.1, own, rows=5)
        assert found.explain().startswith("VIOLATED for this sensitivity: the claim")
        assert "'marginal'" in found.explain()

    def test_the_other_calibrations_are_judged(self):
        """Their share is about the one sensitivity, up to the luck that gamma counts in."""
        mechanism = self.mechanism("training-conditional")
        found = judged(np.sum, mechanism.sensitivity.value, mechanism.guarantee, rows=5)
        assert found.verdict == "not refuted"
        assert "for this sensitivity" in found.explain()

    def test_stays_marginal_wherever_the_promise_goes(self):
        """Certificate, sum of releases and chain, ledger and back: the mark is kept."""
        mechanism = self.mechanism()
        sampled = hs.sample_sensitivity(np.mean, UNIT, rows=5, gamma=0.2)
        both = hs.compose([hs.Laplace(sampled, epsilon=1.0), mechanism], delta=1e-6).guarantee
        released = hs.release(np.sum, np.random.default_rng(1).random(5), mechanism)
        read = Certificate.from_json(released.certificate.to_json()).guarantee
        shifted = mechanism.sensitivity.shifted(1e-6).guarantee(1.0)
        for promise in (both, read, shifted, dataclasses.replace(read, epsilon=0.5)):
            assert promise.marginal
            with pytest.raises(ParameterError, match="marginal"):
                judged(np.sum, 1.0, promise, rows=5)
        assert not hs.Laplace(sampled, epsilon=1.0).guarantee.marginal

    def test_a_ledger_keeps_it(self, tmp_path):
        """Entries and balance say that part of the gamma is marginal."""
        with hs.Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
            ledger.open_budget("b", hs.Guarantee(epsilon=3.0, gamma=0.5))
            assert not ledger.balance("b").spent.marginal
            ledger.charge("b", self.mechanism().guarantee)
            assert ledger.balance("b").spent.marginal
            (entry,) = ledger.entries("b")
            assert entry.guarantee.marginal


@pytest.mark.parametrize(
    ("law", "match"),
    [
        (lambda rng, n: np.sort(rng.random(n)), "in an order"),
        (lambda rng, n: rng.normal() + rng.normal(size=n), "in common"),
        (lambda rng, n: np.random.default_rng(3).random(n), "unequal generators"),
    ],
)
def test_pairs_are_drawn_from_independent_rows_only(law, match):
    """A simulator is tried as it is where a sensitivity is sampled."""
    drawn = hs.PopulationPairs(population=hs.populations.Simulator(law), rows=60, count=40)
    with pytest.raises(BadRows, match=match):
        audit(noisy(np.mean, 1), drawn, claim=hs.Guarantee(epsilon=1, gamma=0.05), samples=4000)


def test_promises_about_given_rows_are_not_accused_by_drawn_ones():
    """A right promise about one new row, 0.5, would be called violated: fresh rows move further."""
    mean = lambda rows: float(np.mean(rows))  # noqa: E731
    s = hs.sample_sensitivity(
        mean, UNIT, rows=20, protect="table", values=[0.5], gamma=0.1, workers=1
    )
    with pytest.raises(ParameterError, match="given new rows"):
        hs.test_sensitivity(mean, UNIT, 20, bound=s, pairs=400)
    with pytest.raises(ParameterError, match="given new rows"):
        judged(mean, s.value, s.guarantee(1.0), rows=20)
