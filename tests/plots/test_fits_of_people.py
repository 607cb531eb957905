"""The picture of a check says whom it compared."""

import numpy as np
import pytest

import hushed as hs
from hushed.plots import population_figure

pytest.importorskip("altair")

COSTS = hs.populations.Uniform(low=0, high=1)
PEOPLE = hs.populations.Users(COSTS, sizes={1: 0.5, 3: 0.5})


@pytest.mark.parametrize(
    ("population", "more", "said"),
    [(COSTS, {}, "60 private rows and"), (PEOPLE, {"user": 0}, "60 private users and")],
)
def test_people_are_not_called_rows(population, more, said):
    """Whose rows are many more."""
    private = population.draw(np.random.default_rng(1), 60)
    found = hs.check_population(private, population, epsilon=1.0, tables=99, **more)
    assert population_figure(found).to_dict()["title"]["subtitle"].startswith(said)
