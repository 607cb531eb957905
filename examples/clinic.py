"""A function that nobody has a sensitivity for: a robust line of cost against age."""

import numpy as np


def expected_costs(rows):
    """Cost expected at ages 30, 50 and 70, by a Theil-Sen line through the median costs of decades.

    The three numbers have one unit, so they share the noise fairly; slope and intercept would not.
    """
    age, cost = rows[:, 0], rows[:, 1]
    decades = np.arange(2, 8)
    medians = np.array([np.median(cost[age // 10 == decade]) for decade in decades])
    i, j = np.triu_indices(6, k=1)
    slope = np.median((medians[j] - medians[i]) / (10 * (decades[j] - decades[i])))
    start = np.median(medians - slope * (10 * decades + 5))
    return start + slope * np.array([30, 50, 70])
