"""A movement that leaves the doubles is no small one."""

import numpy as np
import pytest

import hushed as hs

_HUGE = 1.7e308


def _far_apart(tables, norm):
    """Answer in the last coordinate, or in both, on either side of the doubles."""
    side = np.where(tables[:, 0] < 0.5, _HUGE, -_HUGE)
    first = side if norm == "range" else tables.mean(axis=1)
    return np.stack([first, side], axis=-1)


@pytest.mark.parametrize("norm", ["l1", "l2", "sup", "range"])
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_it_is_refused_in_every_norm(norm, batch):
    """Among 112 pairs some exchange the row that decides, and the largest movement is kept."""

    def function(rows):
        return _far_apart(rows, norm) if batch else _far_apart(rows[None], norm)[0]

    with pytest.raises(hs.errors.ParameterError, match="finite"):
        hs.sample_sensitivity(
            function,
            hs.populations.Uniform(low=0, high=1),
            rows=4,
            norm=norm,
            batch=batch,
        )
