"""What epsilon and delta mean for probabilities, in the words of a certificate."""

from __future__ import annotations

import math

from hushed._ground.decimals import upper_double
from hushed._ground.numeric import round_up
from hushed._ground.printing import format_up
from hushed.guarantee import Guarantee

_DOUBT = 1 / (1 + math.exp(4.6))  # of whoever is 99 % sure, from even odds
_LARGEST = 700.0  # whose exponential is a double
_LONGEST = 1e15  # of whose exponential the digits of the exponent are written out


def describe_factor(promise: Guarantee, what: str, change: str, reach: str = "") -> str:
    """Say how far probabilities may change with the table, and that it is far where it is."""
    epsilon = upper_double(promise.epsilon)
    if epsilon < _LARGEST:
        factor = format_up(round_up(math.exp(epsilon)), 4)
    elif epsilon < _LONGEST:
        factor = f"10^{math.ceil(epsilon / math.log(10)) + 1}"
    else:
        factor = f"10^({format_up(epsilon / 2.302, 4)})"
    slack = f", up to a slack of {format_up(promise.delta, 3)}" if promise.delta else ""
    weak = (
        " That is a weak promise: whoever holds both tables for equally likely may become nearly "
        "sure which of them it was."
    )
    doubt = (1 - promise.delta) / (1 + math.exp(min(epsilon, _LARGEST)))
    return (
        f"Whatever is concluded from {what} would have been concluded from the table {change}, "
        f"too: no probability changes by more than a factor e^epsilon = {factor}{slack}."
        f"{reach}{weak if doubt < _DOUBT else ''}"
    )
