"""Errors of laws of heavy-tailed noise: of the two that are offered, and of their neighbours.

Run with ``python -m benchmarks laws``; it prints the table of docs/worst-case.md. Nothing is drawn:
all numbers follow from the smallest factors that keep epsilon, and from quantiles. Errors are told
in units of S / epsilon, S the smooth sensitivity. Predicted before the first run: Lomax first at 95
% up to a smoothing of a tenth of epsilon, Student's law with 2 degrees first from a fifth on, and
no other law ahead of both by more than a twentieth.
Got: as predicted; where another law is ahead, it is 1 % (3 degrees, a tenth of epsilon = 0.1).
"""

from __future__ import annotations

import math

import hushed as hs

ASKED = ((1.0, 0.05), (1.0, 0.2), (1.0, 0.3), (0.1, 0.1), (0.1, 0.3), (0.1, 0.45))
LEVELS = (0.5, 0.95)
OTHERS = {1: "t(1), Cauchy", 3: "t(3)", 4: "t(4)"}
ANY = hs.statistics.median(rows=3, low=0, high=1)  # errors are in units of its smooth sensitivity

Errors = tuple[float, ...]


def student_loss(degrees: float, factor: float, beta: float) -> float:
    """Largest loss of Student's noise with `factor` times a beta-smooth bound.

    Notes
    -----
    The proof for 2 degrees in docs/worst-case.md holds for any number d of at least 1: the loss is
    the larger one of ``(d + 1) asinh(1/(2 sqrt(d) c))`` and ``(d + 1)/2 arcosh(cosh(beta) +
    exp(-beta)/(2 d c**2)) + (d - 1) beta/2``.
    """
    still = (degrees + 1) * math.asinh(1 / (2 * math.sqrt(degrees) * factor))
    apart = math.acosh(math.cosh(beta) + math.exp(-beta) / (2 * degrees * factor**2))
    return max(still, (degrees + 1) / 2 * apart + (degrees - 1) / 2 * beta)


def student_factor(degrees: float, epsilon: float, beta: float) -> float:
    """Smallest factor at which that loss is epsilon; infinite unless ``degrees beta < epsilon``."""
    if degrees * beta >= epsilon:
        return math.inf
    still = 1 / (2 * math.sqrt(degrees) * math.sinh(epsilon / (degrees + 1)))
    whole = (2 * epsilon - (degrees - 1) * beta) / (degrees + 1)
    room = 2 * degrees * (math.cosh(whole) - math.cosh(beta))
    return max(still, math.sqrt(math.exp(-beta) / room))


def student_errors(degrees: float, epsilon: float, beta: float) -> Errors:
    """Errors that half of the releases keep, and 95 % of them, times epsilon."""
    from scipy import stats

    factor = student_factor(degrees, epsilon, beta)
    return tuple(epsilon * factor * stats.t.ppf((1 + level) / 2, degrees) for level in LEVELS)


def offered_errors(epsilon: float, share: float) -> dict[str, Errors]:
    """Give the same for the laws of `hs.Smooth`, Lomax noise with the thinnest tail that it can."""
    beta, tail = float(f"{share * epsilon:g}"), int(1 / share + 1e-9)
    made = {
        "lomax": hs.Smooth(ANY, epsilon=epsilon, tail=tail, smoothing=beta),
        "t(2)": hs.Smooth(ANY, epsilon=epsilon, noise="t2", smoothing=beta),
    }
    return {
        name: tuple(epsilon * each.accuracy(1 - level) for level in LEVELS)
        for name, each in made.items()
    }


def all_errors(epsilon: float, share: float) -> dict[str, Errors]:
    """Errors of all laws, those that are offered first."""
    others = {
        name: student_errors(degrees, epsilon, share * epsilon) for degrees, name in OTHERS.items()
    }
    return offered_errors(epsilon, share) | others


def table() -> list[str]:
    """Lines of the table."""
    names = list(all_errors(*ASKED[0]))
    lines = [f"| epsilon | smoothing / epsilon | {' | '.join(names)} |", "|---" * 7 + "|"]
    for epsilon, share in ASKED:
        cells = [
            " / ".join(f"{each:.3g}" for each in errors) if math.isfinite(errors[0]) else "-"
            for errors in all_errors(epsilon, share).values()
        ]
        lines.append(f"| {epsilon:g} | {share:g} | {' | '.join(cells)} |")
    return lines


def main(*, quick: bool) -> None:  # noqa: ARG001  (all of it is quick)
    """Print the table; a quick run is the whole one."""
    print("\n".join(table()))
