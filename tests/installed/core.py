"""What the library does without its extras; `package.py` runs it in a clean environment."""

from __future__ import annotations

import math
import pkgutil
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import hushed as hs

OTHERS = (
    *("altair", "duckdb", "ibis", "opendp", "pandas", "polars", "psycopg", "pyarrow", "pyspark"),
    *("pytest", "sklearn", "statsmodels", "vl_convert"),
)
EXTRAS = ("server", "sklearn", "workbench")  # packages of modules that need other packages
PRIVATE = np.random.default_rng(1).uniform(0, 10_000, size=200)


def trimmed_mean(rows):
    """Mean of all but the smallest and the largest rows."""
    return np.sort(rows)[10:-10].mean()


def right(count, rng, size):
    """Count with the noise that it needs."""
    return count[0] + rng.laplace(scale=2.0, size=size)


def wrong(count, rng, size):
    """Count with a quarter of the noise that it needs."""
    return count[0] + rng.laplace(scale=0.5, size=size)


def refused(kind: type[Exception], words: str, call: Callable[[], object]) -> None:
    """Expect a refusal that says certain words."""
    said = ""
    try:
        call()
    except kind as error:
        said = str(error)
    assert words in said, said or "not refused"


def check_the_environment() -> None:
    """The library is the installed one, and brought nothing of its extras."""
    assert Path(sys.prefix) in Path(hs.__file__).parents, hs.__file__
    assert hs.__version__ == version("hushed")
    there = [name for name in OTHERS if find_spec(name)]
    assert not there, f"installed with the core: {there}"


def check_names() -> None:
    """Every name of the face and every module loads, but for the packages that are extras."""
    for name in hs.__all__:
        assert getattr(hs, name) is not None, name
    loaded = [
        import_module(info.name)
        for info in pkgutil.walk_packages(hs.__path__, "hushed.", onerror=needs_an_extra)
        if info.name.split(".")[1] not in (*EXTRAS, "_web") and not info.name.endswith("__main__")
    ]
    assert len(loaded) > 50, loaded
    for name in EXTRAS:
        words = f"pip install 'hushed[{name}]'"
        refused(hs.errors.MissingExtra, words, partial(import_module, f"hushed.{name}"))


def needs_an_extra(name: str) -> None:
    """Only what is an extra may fail to load."""
    assert name.removeprefix("hushed.") in EXTRAS, name


def check_releases() -> None:
    """A sampled release is near the truth, its ledger counts it, and its certificate holds."""
    uniform = hs.populations.Uniform(low=0, high=10_000)
    sensitivity = hs.sample_sensitivity(trimmed_mean, uniform, rows=len(PRIVATE), gamma=0.05)
    mechanism = hs.Laplace(sensitivity, epsilon=1.0)
    with hs.Ledger("sqlite:///budget.db") as ledger:
        ledger.open_budget("rows", hs.Guarantee(epsilon=1.5, gamma=0.1))
        given = {"ledger": ledger, "budget": "rows"}
        released = hs.release(trimmed_mean, PRIVATE, mechanism, **given)
        again = partial(hs.release, trimmed_mean, PRIVATE, mechanism, **given)
        refused(hs.errors.Overspent, "rows", again)
        assert len(ledger.entries("rows")) == 1
    away = abs(released.value - trimmed_mean(PRIVATE))
    assert 0 < away <= mechanism.accuracy(beta=1e-9), away  # false alarms: 1e-9
    assert hs.verify(released.certificate, trimmed_mean).reproduced
    assert not hs.verify(released.certificate, np.mean).reproduced


def check_audits() -> None:
    """An audit tells too little noise from enough."""
    asked = {"claim": hs.Guarantee(epsilon=0.5), "relation": "answers", "samples": 20_000}
    asked |= {"batch": True, "bits": False, "workers": 1}
    pair = [[1], [0]]
    assert hs.audit(wrong, [pair], **asked).verdict == "violated"
    assert hs.audit(right, [pair], **asked).verdict != "violated"


def check_prices() -> None:
    """Composition, risk and cost agree with what is known in closed form."""
    bound = hs.proven_sensitivity(1.0, "l1", argument="a count")
    together = hs.compose([hs.Laplace(bound, epsilon=e) for e in (1.0, 0.5)], delta=0)
    assert math.isclose(together.epsilon, 1.5)
    assert math.isclose(hs.risk.belief(math.log(3), prior=0.5), 0.75)
    need = hs.cost.Need(error=2, beta=0.05, name="a count")
    assert math.isclose(hs.cost.plan([need]).epsilon, math.log(20) / 2, rel_tol=1e-6)


def check_refusals() -> None:
    """Tables, and a client of a server, are refused in words that name the extra."""
    words = "pip install 'hushed[tables]'"
    refused(hs.errors.MissingExtra, words, lambda: hs.table("visits.csv"))
    refused(hs.errors.MissingExtra, words, lambda: hs.table({"who": [1]}))
    connect = partial(hs.connect, "http://127.0.0.1:1", "a token")
    refused(hs.errors.MissingExtra, "pip install 'hushed[client]'", connect)


if __name__ == "__main__":
    check_the_environment()
    check_names()
    check_releases()
    check_audits()
    check_prices()
    check_refusals()
