"""Answers that would be moved on their way to the noise, and what is refused before the charge."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed._functions._calls import answer
from hushed.errors import BadFunction, BadRows, ParameterError
from hushed.spaces import Numbers

BIG = 2**53
ONE = hs.proven_sensitivity(1.0, argument="a count")
TWO = hs.proven_sensitivity(1.0, "l2", argument="a count")
SCORES = hs.proven_sensitivity(1.0, "sup", argument="counts")
MECHANISMS = {
    "Laplace": hs.Laplace(ONE, epsilon=1.0),
    "Gaussian": hs.Gaussian(TWO, epsilon=1.0, delta=1e-6),
    "Exponential": hs.Exponential(SCORES, epsilon=1.0),
    "Bernstein": hs.Bernstein(SCORES, epsilon=1.0, lattice=1),
}


class Held:
    """A number that NumPy is told when it asks, as tensors tell it."""

    def __init__(self, number):
        self.number = number

    def __array__(self, dtype=None, copy=None):
        return np.array(self.number, dtype=dtype)

    def __float__(self):
        return float(self.number)


ROUNDED = {
    "an integer": BIG + 1,
    "a list": [BIG + 3, 1],
    "among floats": [BIG + 3, 0.5],
    "nested": ([BIG + 3, 0.5], [1, 2]),
    "NumPy's": np.array([BIG + 1, 0]),
    "unsigned": np.array([2**64 - 1, 0], dtype=np.uint64),
    "negative": np.array([-BIG - 1, 0]),
    "a scalar": np.int64(BIG + 1),
    "a series": pd.Series([BIG + 1, 0]),
    "a frame": pd.DataFrame({"n": [BIG + 1], "x": [0.5]}),
    "Polars": pl.Series([BIG + 1, 0]),
    "a frame of Polars": pl.DataFrame({"n": [BIG + 1], "x": [0.5]}),
    "long doubles": np.array([BIG + 1, 0.1], dtype=np.longdouble),
    "a long double": np.longdouble(1) / 3,
    "without axes": [np.array(BIG + 3), 0.5],
    "of a type of one's own": [Held(BIG + 3), 0.5],
}


@pytest.mark.parametrize("name", ROUNDED)
def test_answers_that_a_double_does_not_hold(name):
    """Reading them would move neighbours farther apart than the sensitivity says."""
    raw = ROUNDED[name]
    for private in (False, True):
        with pytest.raises(BadFunction, match=r"2\*\*53") as caught:
            answer(lambda rows: raw, np.zeros(3), private=private)
        assert "9007199254740" not in str(caught.value)
    for mechanism in MECHANISMS.values():
        with pytest.raises(ParameterError, match=r"2\*\*53") as caught:
            mechanism.draw(raw)
        assert "9007199254740" not in str(caught.value)


@pytest.mark.parametrize("raw", [[BIG + 3, 0.5], np.array([BIG + 3, 1]), [BIG + 3, None]])
def test_answers_within_a_chain(raw):
    """A step of one's own gives numbers that doubles hold, or none."""
    with pytest.raises(BadRows, match="the answer"):
        Numbers(dims=2).check(raw)


def test_a_learned_function_is_read_as_carefully():
    """Lattice values are answers, too."""
    f = hs.on_lattice(lambda rows: lambda x: np.array([BIG + 3, 0], dtype=np.int64), lattice=1)
    with pytest.raises(BadFunction, match=r"2\*\*53"):
        f(np.zeros(3))
    with pytest.raises(BadFunction, match=r"2\*\*53"):
        MECHANISMS["Bernstein"].draw(lambda x: np.array([BIG + 3, 0], dtype=np.int64))


@pytest.mark.parametrize(
    "raw", [BIG, -BIG, [BIG, 0.5], [np.array(BIG), 0.5], np.array([BIG]), True, [True, 2], 1e300]
)
def test_answers_that_a_double_holds(raw):
    """Integers up to 2**53 are exact, and floats are what they are."""
    found = answer(lambda rows: raw, np.zeros(3), private=True)
    assert found.ravel().tolist() == [float(x) for x in np.ravel(raw)]


BEFORE = {
    "too much noise": hs.Laplace(hs.proven_sensitivity(1e308, argument="huge"), epsilon=0.1),
    "too fine a grid": hs.Laplace(ONE, epsilon=1e-17),
    "a lattice": hs.Bernstein(SCORES, epsilon=1e-13, lattice=20_000),
    "Gaussian": hs.Gaussian(
        hs.proven_sensitivity(1e308, "l2", argument="huge"), epsilon=0.1, delta=1e-6
    ),
}


@pytest.mark.parametrize("name", BEFORE)
def test_what_no_row_decides_is_refused_before_the_charge(name, ledger):
    """The grid of the noise is laid first, as far as the number of values is known."""
    calls = []
    with pytest.raises(ParameterError):
        hs.release(lambda r: calls.append(1) or 1.0, [1, 2], BEFORE[name], ledger, budget="x")
    assert ledger.log == []
    assert calls == []


LATER = {
    "scores": (MECHANISMS["Exponential"], np.zeros((2, 37))),
    "one score": (MECHANISMS["Exponential"], 1.0),
    "lattice": (MECHANISMS["Bernstein"], np.zeros(37)),
    "many": (hs.Laplace(ONE, epsilon=2e-16), np.zeros(3700)),
}


@pytest.mark.parametrize("name", LATER)
def test_what_the_answer_decides_stays_paid_and_withheld(name, ledger):
    """A proven sensitivity has no shape: the one found is a fact about the rows."""
    mechanism, answer = LATER[name]
    with pytest.raises(BadFunction, match=r"cannot release.*the charge stays") as caught:
        hs.release(lambda rows: answer, [1, 2], mechanism, ledger, budget="x")
    assert "37" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert len(ledger.log) == 1
    with pytest.raises(ParameterError) as direct:
        mechanism.draw(answer)
    assert "37" not in str(direct.value)


def test_noise_that_cannot_be_drawn_stays_paid_and_withheld(ledger, monkeypatch):
    """A memory that is too small is told with the size of the answer."""

    def full(values, **settings):
        raise MemoryError(f"unable to allocate an array of shape {values.shape}")

    monkeypatch.setattr(hs.noise, "add_laplace", full)
    with pytest.raises(BadFunction, match=r"not drawn \(MemoryError\); the charge stays") as caught:
        hs.release(lambda rows: np.zeros(37), [1, 2], MECHANISMS["Laplace"], ledger, budget="x")
    assert "37" not in str(caught.value)
    assert caught.value.__context__ is None


class Lazy:
    """Works out its value when it is read, and says so."""

    def __array__(self, dtype=None, copy=None):
        print("Wilhelmina-Quux")
        return np.array(1.0)


def test_an_answer_that_speaks_when_it_is_read(capsys):
    """Reading belongs to the private call."""
    hs.release(lambda rows: Lazy(), [1, 2], MECHANISMS["Laplace"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("paid", [True, False])
def test_a_stop_within_the_function_says_what_was_paid(paid, ledger, press_ctrl_c):
    """Ctrl-C after the charge: nothing is released, and the charge is told."""

    def f(rows):
        try:
            press_ctrl_c()
        finally:
            raise KeyboardInterrupt("Wilhelmina-Quux")

    named = {"ledger": ledger, "budget": "x"} if paid else {}
    said = "the charge stays" if paid else "count the budget as spent"
    with pytest.raises(KeyboardInterrupt, match=f"nothing was released, but {said}") as caught:
        hs.release(f, [1, 2], MECHANISMS["Laplace"], **named)
    assert "Wilhelmina" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.slow
def test_the_command_says_it_too(tmp_path):
    """Exit code 130, and the charge on standard error."""
    (tmp_path / "f.py").write_text(
        "import signal\n"
        "def f(rows):\n"
        "    if rows.max() > 0.9999:\n"
        "        signal.signal(signal.SIGINT, signal.getsignal(signal.SIGTERM))\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "    return rows.mean()\n"
    )
    (tmp_path / "rows.csv").write_text("\n".join(["0.5"] * 9 + ["1.0"]) + "\n")

    def run(*arguments):
        code = "import sys; from hushed.cli import main; sys.argv[0] = 'hushed'; main()"
        path = {"PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, check=False,
        )  # fmt: skip

    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as book:
        book.open_budget("b", hs.Guarantee(epsilon=1, gamma=0.1))
    done = run(
        "release", "rows.csv", "f.py:f", "--population", "uniform:0,1", "--epsilon", 0.5,
        "--header", "--workers", 1, "--ledger", "sqlite:///l.db", "--budget", "b",
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "nothing was released, but the charge stays" in done.stderr
