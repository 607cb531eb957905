"""Sample from a simulator: no public table is at hand, but how the rows come about is known.

Machines send their power draw every hour. The function is the median of each hour of the day;
nobody has derived how far one machine can move the 24 of them. A simulator made from data sheets is
the public source, and the last part asks how wrong it may be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import hushed as hs

MACHINES = 2000
HOURS = np.arange(24)

Rows = NDArray[np.float64]


def machines(rng: np.random.Generator, count: int) -> Rows:
    """Power draw of machines over a day, in kW: base load, one shift, noise; from data sheets."""
    base = rng.gamma(4.0, 0.5, size=(count, 1))
    start = rng.integers(5, 10, size=(count, 1))
    length = rng.integers(7, 11, size=(count, 1))
    working = (start <= HOURS) & (start + length > HOURS)
    draw = base * (1 + 4 * working) + rng.normal(0, 0.1, size=(count, 24))
    return np.clip(draw, 0, 40)


def usual_day(rows: Rows) -> Rows:
    """Median draw in each hour of the day, in kW."""
    return np.median(rows, axis=0)


def main() -> None:
    source = hs.populations.Simulator(machines, name="machines, data sheets of 2025")
    s = hs.sample_sensitivity(
        usual_day, source, rows=MACHINES, norm="l2", gamma=0.05, symmetric=True
    )
    mechanism = hs.Gaussian(s, epsilon=1.0, delta=1e-6)
    print(f"l2 sensitivity {s.value:.3f} kW over 24 hours, from {s.pairs} pairs")
    print(f"error at 95 %, worst hour: {mechanism.accuracy(beta=0.05, dims=24):.2f} kW")

    private = machines(np.random.default_rng(), MACHINES)  # yours
    day = hs.release(usual_day, private, mechanism).value
    print(f"the peak of the released day is {day.max():.1f} kW at {int(np.argmax(day))} o'clock")

    # The promise is about rows drawn as the simulator draws them. If the real ones differ by at
    # most tau nats a row (KL divergence of the simulated from the real law), gamma grows:
    for tau in (1e-7, 1e-6, 1e-5):
        print(f"wrong by {tau:g} nats a row: gamma {s.shifted(tau).gamma:.3f}")


if __name__ == "__main__":
    main()
