"""The accounting cases by dp-accounting: upper bounds from loss distributions, default grid."""

from __future__ import annotations

from importlib.metadata import version

from dp_accounting.pld import privacy_loss_distribution as pld

from benchmarks.peers import cases


def mixed() -> float:
    parts = [pld.from_laplace_mechanism(b) for b in cases.SCALES]
    parts += [pld.from_gaussian_mechanism(s) for s in cases.SIGMAS]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [one.compose(other) for one, other in pairs] + rest
    return float(parts[0].get_epsilon_for_delta(cases.DELTA))


def jobs() -> cases.Jobs:
    return {
        "compose gaussian": lambda: (
            pld.from_gaussian_mechanism(cases.SIGMA)
            .self_compose(cases.RELEASES)
            .get_epsilon_for_delta(cases.DELTA)
        ),
        "compose laplace": lambda: (
            pld.from_laplace_mechanism(1 / cases.LEVEL)
            .self_compose(cases.RELEASES)
            .get_epsilon_for_delta(cases.DELTA)
        ),
        "compose mixed": mixed,
    }


if __name__ == "__main__":
    cases.answer("dp-accounting", version("dp-accounting"), jobs())
