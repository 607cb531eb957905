"""An error that somebody asks for is kept, or refused at once: never promised, never hung on."""

import itertools
import signal
from functools import partial

import pytest

import hushed as hs
from hushed.errors import HushedError, ParameterError

ERRORS = [5e-324, 1e-310, 1e-15, 1e15, 1e300, 1.7e308]
KINDS = {
    "laplace": (hs.Laplace, "l1", {"dims": 5}),
    "gaussian": (hs.Gaussian, "l2", {"delta": 1e-6}),
    "exponential": (hs.Exponential, "sup", {"dims": 5}),
    "range": (hs.Exponential, "range", {"dims": 5}),
    "noisy max": (hs.NoisyMax, "sup", {"dims": 5}),
    "noisy max, range": (hs.NoisyMax, "range", {"dims": 2}),
    "top k": (partial(hs.TopK.for_accuracy, 3), "sup", {"dims": 5}),
    "top k, range": (partial(hs.TopK.for_accuracy, 1), "range", {"dims": 5}),
    "bernstein": (hs.Bernstein, "sup", {"dims": 2, "order": 3}),
}


def proven(value, norm):
    return hs.proven_sensitivity(value, norm, argument="test")


@pytest.fixture
def alarm():
    """Stop what takes longer than 20 seconds."""

    def stop(*_):
        raise TimeoutError

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, former)


@pytest.mark.slow_cases("1.0-gaussian")
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("moved", [5e-324, 1.0, 1e308])
@pytest.mark.usefixtures("alarm")
def test_any_error_is_kept_or_refused_in_a_moment(name, moved):
    """Errors and sensitivities at both ends of the doubles: no hang, no failure of arithmetic."""
    kind, norm, options = KINDS[name]
    values = options.get("dims", 1) if name != "bernstein" else None
    build = getattr(kind, "for_accuracy", kind)
    for error, beta in itertools.product(ERRORS, [0.05, 1 - 1e-16]):
        try:
            found = build(proven(moved, norm), error=error, beta=beta, **options)
        except HushedError:
            continue
        assert (found.accuracy(beta, values) if values else found.accuracy(beta)) <= error


@pytest.mark.parametrize("epsilon", [1.0, 1e9, 1e14, 3e15])
def test_the_regret_stated_covers_the_rounding_of_scores(epsilon):
    """Two scores that round to one step of the grid are drawn by a toss, whatever epsilon is."""
    choice = hs.Exponential(proven(1.0, "range"), epsilon=epsilon)
    shortfall = 2.0**-46  # rounds to 0, half to even
    tosses = sum(choice.draw([0.0, shortfall]) == 0 for _ in range(200))
    assert tosses > 40  # with a chance of 0.05: once in 1e12
    assert choice.accuracy(0.05, 2) >= shortfall


def test_no_epsilon_reaches_an_error_below_the_step_of_the_grid():
    """Scores closer than a step are not told apart, so that such an error is refused."""
    with pytest.raises(ParameterError, match="no epsilon reaches"):
        hs.Exponential.for_accuracy(proven(1.0, "range"), error=1e-15, dims=2)


@pytest.mark.parametrize("norm", ["sup", "range"])
@pytest.mark.parametrize(("moved", "epsilon"), [(1e308, 0.1), (1e300, 1e-20)])
def test_scales_beyond_all_doubles_are_refused_in_words(norm, moved, epsilon):
    """The accuracy of such a choice is not a number; the message says what to do."""
    with pytest.raises(ParameterError, match=r"rescale|finite"):
        hs.Exponential(proven(moved, norm), epsilon=epsilon).accuracy(0.05, 3)
