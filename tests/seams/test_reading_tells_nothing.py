"""What cannot be read as numbers is refused in one way, whatever it raises when it is read."""

import traceback

import numpy as np
import pytest

from hushed.errors import BadRows
from hushed.measurements import laplace
from hushed.spaces import ABSOLUTE, CHANGE_ONE, Cell, Numbers, Opaque, Space
from hushed.transformations import declared

_PRIVATE = np.array([0.5, 987654.321])


class _Telling:
    """An answer that is worked out when it is read, and fails with a private text."""

    def __init__(self, kind):
        self.kind = kind

    def __array__(self, *given, **named):
        raise self.kind("Wilhelmina 987654")


@pytest.mark.parametrize("kind", [ValueError, KeyError, RuntimeError, SystemExit])
def test_an_answer_of_a_chain_that_fails_when_read(kind):
    """The error of a chain shows neither the text nor the kind of what was raised."""
    chain = declared(
        lambda rows: _Telling(kind),
        source=Space(domain=Opaque(size=2), metric=CHANGE_ONE),
        target=Space(domain=Numbers(), metric=ABSOLUTE),
        stability=1.0,
        argument="a test",
    ) >> laplace(1.0)
    with pytest.raises(BadRows) as caught:
        chain(_PRIVATE)
    assert "Wilhelmina" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("cell", [10**400, 2**60, np.int64(2**53 + 1), np.complex128(1j)])
def test_cells_among_missing_ones_are_read_without_loss(cell):
    """Beyond the doubles, between them, or on another axis: refused as in a column of numbers."""
    with pytest.raises(BadRows):
        Cell(missing=True).check([cell, None])
