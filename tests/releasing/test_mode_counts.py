"""The winner of a vote with its lead, and the best of several: by the counts of a mode."""

import itertools
import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.errors import BadRows, ParameterError, PrivateRowsAsPopulation, ZeroSensitivity

KEYS = ("a", "b", "c")
VOTES = ["b"] * 900 + ["a"] * 400 + ["?"] * 50
NORMS = {
    "l1": lambda moved: np.abs(moved).sum(),
    "l2": lambda moved: math.sqrt((moved * moved).sum()),
    "sup": lambda moved: np.abs(moved).max(),
    "range": lambda moved: max(moved.max(), 0) - min(moved.min(), 0) if moved.any() else 0,
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("private", [True, False])
def test_no_row_moves_the_counts_further(norm, private):
    """All neighbours among tables of up to three rows, one cell of which is no category."""
    s = hs.statistics.mode(KEYS, rows=None if private else 3)
    cells = (*KEYS, "?")
    worst = 0.0
    for table in itertools.product(cells, repeat=2 if private else 3):
        before = s([*table]).astype(float)
        for new in cells:
            other = [*table, new] if private else [*table[:-1], new]
            worst = max(worst, float(NORMS[norm](s(other) - before)))
    assert hs.global_sensitivity(s, norm).value == pytest.approx(worst, rel=1e-12)
    assert hs.global_sensitivity(s, norm).value >= worst
    assert hs.global_sensitivity(s, norm).neighbours == ("add-remove" if private else "replace-one")
    assert hs.global_sensitivity(s).norm == "sup"


@pytest.mark.parametrize("kind", ["noisy max", "top-k", "exponential", "laplace"])
def test_a_choice_by_counts_is_named_certified_and_followed(kind):
    """The categories are the names; the promise is for every table, by nobody's word."""
    s = hs.statistics.mode(KEYS)
    moved = hs.global_sensitivity(s, "l1" if kind == "laplace" else "range")
    made = {
        "noisy max": lambda: hs.NoisyMax(moved, epsilon=1.0),
        "top-k": lambda: hs.TopK(2, moved, epsilon=1.0),
        "exponential": lambda: hs.Exponential(moved, epsilon=1.0),
        "laplace": lambda: hs.Laplace(moved, epsilon=1.0),
    }[kind]()
    released = hs.release(s, VOTES, made)
    known = released.certificate
    if kind == "laplace":
        assert list(released.named) == list(KEYS)
        assert released.named["b"] == pytest.approx(900, abs=100)
    else:
        assert released.chosen == (("b", "a") if kind == "top-k" else ("b",))
        assert "chosen: b" in str(released)
    if kind == "noisy max":
        assert released.value.gap == pytest.approx(500, abs=100)
        assert f"\nb  {released.value.gap:.6g}\n" in hs.certify(released).explain()
    assert hs.Certificate.from_json(known.to_json()) == known
    assert hs.verify(known).reproduced
    words = known.explain()
    assert "this holds for every table and every row; no population is assumed" in words
    assert "what the numbers of rows of 3 public categories say" in words
    assert "stands as it was given" not in words
    assert hs.certify(released).guarantee == known.guarantee
    forged = json.loads(known.to_json()) | {"sensitivity": 0.5}
    with pytest.raises(ParameterError, match="contradicts itself"):
        hs.Certificate.from_json(json.dumps(forged))


def test_what_is_not_that_statistic_is_refused():
    """Another table size, another statistic, a norm that is none: before anything is drawn."""
    s = hs.statistics.mode(KEYS, rows=5)
    made = hs.NoisyMax(hs.global_sensitivity(s, "range"), epsilon=1.0)
    with pytest.raises(BadRows, match="for 5 rows"):
        hs.release(s, ["a"] * 4, made)
    with pytest.raises((ParameterError, ZeroSensitivity), match="bounds no other function"):
        hs.release(hs.statistics.mode(("a", "b"), rows=5), ["a"] * 5, made)
    with pytest.raises(ParameterError, match="norm must be one of"):
        hs.global_sensitivity(s, "l3")


def test_noise_beyond_the_range_is_certified_all_the_same():
    """Laplace noise carries a mean out of its range; that is a release like any other."""
    s = hs.statistics.mean(rows=10, low=0, high=10)
    made = hs.Laplace(hs.global_sensitivity(s), epsilon=0.01)
    told = [hs.release(s, np.arange(10.0), made) for _ in range(12)]
    outside = [each for each in told if not 0 <= each.value <= 10]
    assert outside  # each is outside with a chance of 0.95
    assert hs.certify(outside[0]).guarantee == made.guarantee


@pytest.fixture
def ask(tmp_path):
    """Ask the command about a file of votes."""
    path = tmp_path / "votes.csv"
    path.write_text("vote\n" + "\n".join(VOTES) + "\n")
    categories = [part for key in KEYS for part in ("--category", key)]

    def run(*words):
        asked = ["statistic", "mode", str(path), "--column", "vote", *categories, *words]
        return CliRunner().invoke(app, [*map(str, asked), "--epsilon", "1", "--private-count"])

    return run


def test_the_command_tells_the_winner_and_its_lead(ask):
    """``--mechanism noisy-max``, in words and as JSON."""
    told = ask("--mechanism", "noisy-max")
    assert told.exit_code == 0, told.output
    assert "chosen: b" in told.stdout
    found = json.loads(ask("--mechanism", "noisy-max", "--json").stdout)
    assert found["named"] == ["b"]
    assert found["value"]["index"] == 1
    assert found["value"]["gap"] == pytest.approx(500, abs=100)
    assert found["certificate"]["neighbours"] == "add-remove"


def test_the_command_chooses_several(ask):
    """``--mechanism top-k --k 2``, the best first."""
    found = json.loads(ask("--mechanism", "top-k", "--k", 2, "--json").stdout)
    assert found["named"] == ["b", "a"]
    assert found["value"] == [1, 0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mechanism", "top-k"), "needs --k"),
        (("--mechanism", "noisy-max", "--k", 2), "--k goes with --mechanism top-k"),
        (("--mechanism", "top-k", "--k", 4), "number of categories, 3, got 4"),
        (("--mechanism", "top-k", "--k", 0), "k must be"),
        (("--mechanism", "laplace"), "noisy-max and top-k"),
    ],
)
def test_the_command_refuses_what_does_not_fit(ask, words, message):
    """Before anything is read or charged, with what to give."""
    told = ask(*words)
    assert told.exit_code == 2
    assert message in " ".join(told.stderr.split())


def test_categories_that_are_the_private_rows_are_refused():
    """The names beside the answer would be the rows themselves."""
    rows = ["anna", "bert", "carl"]
    s = hs.statistics.mode(rows)
    made = hs.NoisyMax(hs.global_sensitivity(s, "range"), epsilon=1.0)
    with pytest.raises(PrivateRowsAsPopulation, match="private rows"):
        hs.release(s, rows, made)


@pytest.mark.parametrize("categories", [[1, "1"], ["True", True], ["a", "b"]])
def test_no_number_is_lost_where_categories_are_written_alike(categories):
    """One name stood for two, and the first number was not shown."""
    s = hs.statistics.mode(categories)
    votes = categories[:1] * 900
    made = hs.Laplace(hs.global_sensitivity(s, "l1"), epsilon=1.0)
    released = hs.release(s, votes, made)
    assert list(released.named.values()) == released.value.tolist()
    chosen = hs.release(s, votes, hs.NoisyMax(hs.global_sensitivity(s), epsilon=1.0)).chosen
    assert chosen == tuple(released.named)[:1]
