"""The figure of a population check holds its tables and its two lines."""

import numpy as np

import hushed as hs
from hushed.plots import population_figure


def test_the_private_table_lies_among_the_public_ones():
    """All noisy statistics, the private one, and what would be caught."""
    rows = np.linspace(0, 1, 60)
    made = hs.check_population(rows, hs.populations.Uniform(low=0, high=1), epsilon=2.0, tables=19)
    drawn = population_figure(made).to_dict()
    bars, lines = (layer["data"]["values"] for layer in drawn["layer"])
    assert [each["statistic"] for each in bars] == list(made.deviations)
    assert [each["at"] for each in lines] == [made.statistic, made.caught]
    assert drawn["title"]["text"].startswith(made.verdict)
