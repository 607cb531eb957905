"""What a draw of a Markov chain promises, whose distance from the posterior is proven."""

from __future__ import annotations

import math
from fractions import Fraction

from hushed._ground.calls import called_as
from hushed._ground.checks import read_epsilon
from hushed._ground.decimals import decimal_of, read, stated_above
from hushed._ground.precise import mp
from hushed._ground.printing import as_given
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours, Unit

_BITS = 100


@called_as(
    'hs.posterior.chain_guarantee(1.0, total_variation=1e-6, argument="proved in our paper")'
)
def chain_guarantee(
    epsilon: float,
    *,
    total_variation: float | None = None,
    argument: str = "",
    neighbours: Neighbours = "replace-one",
    unit: Unit = "row",
) -> Guarantee:
    """Promise of a draw that is close to a posterior of a known epsilon, on every table.

    Parameters
    ----------
    epsilon : float
        What an exact draw would promise: the weight of the log likelihood times its range.
    total_variation : float
        Proven bound on the total variation between the draw and the posterior, which holds for
        every table; in [0, 1).
    argument : str
        The proof, or where it is: perfect simulation, a minorisation that was certified, ...
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        How two tables differ.
    unit : {"row", "user"}, default "row"
        What differs between them.

    Returns
    -------
    Guarantee
        With ``delta = (1 + exp(epsilon)) * total_variation``, rounded up. Charge it before the
        chain runs.

    Raises
    ------
    ParameterError
        If there is no bound or no proof. That a chain has converged cannot be read off its draws:
        no diagnostic is a proof.

    Examples
    --------
    >>> chain_guarantee(1.0, total_variation=1e-9, argument="perfect simulation to 1e-9").delta
    3.71828182845904...e-09
    """
    level = read_epsilon(epsilon)
    if total_variation is None or not isinstance(argument, str) or not argument.strip():
        raise ParameterError(
            "a Markov chain is near its posterior only where that is proven, for every table: give "
            "total_variation= and say in argument= why it holds. Convergence diagnostics prove "
            "nothing; hs.Posterior draws exactly from a grid",
            parameter="total_variation",
        )
    far = read("total_variation", total_variation, up=True)
    if not 0 <= far < 1:
        raise ParameterError(
            f"total_variation must be in [0, 1), got {as_given(total_variation)}",
            parameter="total_variation",
        )
    delta = stated_above(_exp_above(decimal_of(level)) * decimal_of(far) + decimal_of(far))
    if not delta < 1:
        raise ParameterError(
            f"delta = (1 + e^epsilon) * total_variation reaches {delta:.3g}: nothing is promised",
            parameter="total_variation",
        )
    return Guarantee(epsilon=level, delta=delta, neighbours=neighbours, unit=unit)


def _exp_above(exponent: Fraction) -> Fraction:
    """Exponential of a rational number, rounded up."""
    if exponent > 1000:
        raise ParameterError(
            "epsilon is too large for a draw that is not exact", parameter="epsilon"
        )
    with mp.workprec(_BITS):
        found = mp.exp(mp.mpf(exponent.numerator) / exponent.denominator)
        mantissa, power = found.man_exp
    size = math.ceil(mantissa)
    return Fraction(size) * Fraction(2) ** int(power) * (1 + Fraction(1, 1 << (_BITS - 20)))
