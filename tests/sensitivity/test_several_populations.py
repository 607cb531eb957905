"""One sensitivity for several populations: the largest, and only of what was sampled alike."""

import numpy as np
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.populations import Normal, Simulator, Uniform


def mean(rows):
    return float(rows.mean())


def sampled(population, f=mean, **options):
    return hs.sample_sensitivity(f, population, **{"rows": 20, "workers": 1} | options)


def test_the_largest_one_is_kept_whatever_their_order():
    """It promises, and is released, as it does alone."""
    small, large = sampled(Normal(std=1)), sampled(Normal(std=3))
    assert hs.largest_sensitivity([small, large]) is large
    assert hs.largest_sensitivity(each for each in (large, small)) is large
    made = hs.release(mean, np.zeros(20), hs.Laplace(large, epsilon=1.0))
    assert made.certificate.guarantee.gamma == small.gamma


def test_each_population_is_covered():
    """Of fresh pairs of either, at most a gamma share moves further."""
    kinds = Normal(std=1), Simulator(lambda rng, n: rng.standard_t(2, size=n))
    kept = hs.largest_sensitivity(sampled(each, gamma=0.1) for each in kinds)
    for each in kinds:
        rng = np.random.default_rng(5)
        moved = [abs(np.subtract(*each.draw(rng, 2))) / 20 for _ in range(2000)]
        assert np.mean(np.array(moved) > kept.value) <= 0.1


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"population": Uniform(low=0, high=1)}, "the public range"),
        ({"rows": 21}, "rows"),
        ({"gamma": 0.2}, "gamma"),
        ({"protect": "everyone", "calibration": "marginal", "gamma": 0.5}, "gamma"),
        ({"norm": "l2"}, "norm"),
        ({"distance": 2}, "distance"),
        ({"position": "worst"}, "position"),
        ({"unit": "person"}, "neighbours"),
        ({"f": np.median}, "function"),
        ({"population": Normal(mean=[0], std=[1])}, "the kind of rows"),
    ],
)
def test_what_was_not_sampled_alike_is_refused(other, differs):
    """The message says in what they differ."""
    two = sampled(**{"population": Normal()} | other)
    with pytest.raises(ParameterError, match=f"differ in {differs}"):
        hs.largest_sensitivity([sampled(Normal()), two])


def test_rows_that_were_put_in_worst_are_the_same():
    """A movement by values around 1 bounds none by values around 5."""
    asked = {"protect": "table", "gamma": 0.2}
    near, far = (
        sampled(Normal(std=std), values=[(-one,), (one,)], **asked) for std, one in ((9, 1), (1, 5))
    )
    with pytest.raises(ParameterError, match="differ in values"):
        hs.largest_sensitivity([near, far])


def test_what_is_not_sampled_is_refused():
    """A proven sensitivity needs no population, and nothing has no largest one."""
    proven = hs.proven_sensitivity(1.0, argument="one row in [0, 1]")
    with pytest.raises(ParameterError, match="a proven one"):
        hs.largest_sensitivity([sampled(Normal()), proven])
    with pytest.raises(ParameterError, match="no sensitivity"):
        hs.largest_sensitivity([])


def test_several_populations_at_once_are_refused_with_the_way_to_do_it():
    """The error names what keeps the largest of several; rows in a list are no populations."""
    with pytest.raises(ParameterError, match=r"hs\.largest_sensitivity\("):
        sampled([Normal(std=1), Normal(std=2)])
    with pytest.raises(ParameterError, match=r"PublicTable\(rows\)"):
        sampled([1.0, 2.0])
