"""How populations are shown: no address of a function; a model is no promise for its rows."""

import numpy as np
import pytest

import hushed as hs

made = hs.populations
PUBLIC = made.PublicTable(np.random.default_rng(0).normal(size=(300, 2)), name="survey")


def stays(rng, count):
    """Draw numbers."""
    return rng.normal(size=(count, 2))


MODEL = made.fitted(PUBLIC)
MIXED = made.Contaminated(MODEL, made.Uniform(low=[0, 0], high=[1, 1]), share=0.01)
EACH = {
    "simulator": made.Simulator(stays),
    "model": MODEL,
    "mixture": MIXED,
    "users": made.Users(made.Normal(mean=[0, 1], std=[1, 2]), sizes={1: 0.5, 2: 0.5}),
    "users of a function": made.Users(lambda rng: stays(rng, 2)),
    "uniform": made.Uniform(low=0, high=1),
    "many columns": made.Normal(mean=list(range(500)), std=[1.0] * 500),
    "exponential": made.Exponential(rate=2),
}


@pytest.mark.parametrize("kind", EACH)
def test_a_population_has_words_and_a_card(kind):
    """Neither holds an address, or pages of numbers."""
    population = EACH[kind]
    for text in (str(population), population._repr_html_()):
        assert " at 0x" not in text
        assert population.describe()["kind"] in text or "Model of survey" in text
        assert len(text) < 3000
    if kind != "many columns":
        assert len(repr(population)) < 250
    assert " at 0x" not in repr(population)


@pytest.mark.parametrize("population", [MODEL, MIXED], ids=["model", "mixture"])
def test_gamma_of_a_model_is_said_to_be_about_the_model(population):
    """By the sensitivity, and among the assumptions of the certificate, with the exact call."""
    s = hs.sample_sensitivity(np.mean, population, rows=20, gamma=0.1, symmetric=True)
    rows = stays(np.random.default_rng(1), 20)
    told = hs.release(np.mean, rows, hs.Laplace(s, epsilon=1.0)).certificate.explain()
    assumed = next(each for each in told.split("\n") if each.startswith("  - the private rows"))
    for text in (s.explain(), assumed):
        assert "not the law of those rows" in text or "not for the law of those rows" in text
        assert "0.05 to 0.09" in text
        assert "hs.check_population(rows, population, epsilon=1.0)" in text
    assert "hs.check_population(rows, population, epsilon=1.0)" in str(MODEL)


def test_other_populations_are_not_said_to_be_models():
    """A law has no such remark."""
    s = hs.sample_sensitivity(np.mean, EACH["uniform"], rows=20, gamma=0.1, symmetric=True)
    assert "model" not in s.explain()


@pytest.mark.parametrize("sizes", [[1, 3], {1, 3}, np.array([1, 3]), {}, 0, True, "3", 1.5])
def test_sizes_that_are_none_are_refused_in_words(sizes):
    """A list of them was no key of a mapping, and said no more than that."""
    with pytest.raises(hs.errors.ParameterError, match="sizes must be a whole number"):
        made.Users(made.Uniform(low=0, high=1), sizes=sizes)
