"""A number on the command line or in a file is what it says, or it is none."""

import math

import pytest
from typer.testing import CliRunner

import hushed.cli
from hushed._ground.numerals import is_whole_number, read_cell, read_number, read_whole
from hushed._rows._texts import read_texts
from hushed.cli import app
from hushed.cli._tables import read_column
from hushed.errors import BadRows

NONE = ["1_0", " 1", "1 ", "\uff11", "1\u0663", "1\u00a0", "0x10", "1e400", "-1e400", "1e-400"]
NONE += ["1e", ".", "1,5", "1e5_0", "", "+-1", "1" * 2000]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_number(text):
    """Python's own reader takes most of these."""
    with pytest.raises(ValueError, match="it is "):
        read_number(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("-.5e-3", -0.0005), ("+2.E2", 200.0), ("0e-999", 0.0), ("-inf", -math.inf)],
)
def test_what_is_one(text, value):
    """In every plain spelling."""
    assert read_number(text) == value


def test_whole_numbers_are_digits():
    """Those of one script, without anything between them."""
    assert read_whole("-12") == -12
    assert is_whole_number("12")
    for text in ("1_0", "\u0661", "1.0", " 1", ""):
        assert not is_whole_number(text)
        with pytest.raises(ValueError, match="whole"):
            read_whole(text)


def test_cells_of_files():
    """Blanks around a number do not count, and what is too large for a double is infinite."""
    assert [read_cell(each) for each in (" 1.5 ", "1e400", "-Infinity")] == [
        1.5,
        math.inf,
        -math.inf,
    ]
    assert math.isnan(read_cell("NaN") or 0.0)
    assert [read_cell(each) for each in ("1_0", "\uff11", "", "x")] == [None] * 4


def test_an_underscore_in_a_file_is_no_number(tmp_path):
    """A public column is refused."""
    path = tmp_path / "public.csv"
    path.write_text("cost\n1_0\n2\n")
    with pytest.raises(BadRows, match="row 1"):
        read_column(path, "cost", header=True, text=False)


def test_codes_in_a_joined_file_stay_texts():
    """A code such as 1_0 is no ten, and none becomes another one."""
    codes = ["1_0", "2_1"]
    assert read_texts(codes) == codes
    assert read_texts(["\uff11.5", "2.5"]) == ["\uff11.5", "2.5"]
    assert read_texts(["1.5", "", "-2"]) == [1.5, None, -2.0]


TYPED = [
    ("risk", "--epsilon0", "2", "--epsilon"),
    ("cost", "--error", "2", "--beta"),
    ("compose", "laplace:0.1", "--delta"),
    ("sensitivity", "f.py:f", "--population", "uniform:0,1", "--rows", "9", "--rows"),
    ("ledger", "open", "sqlite:///b.db", "b", "--epsilon"),
]


@pytest.mark.parametrize("words", TYPED, ids=lambda words: words[0])
def test_an_option_reads_no_other_number(words, tmp_path, monkeypatch):
    """A slip of the hand is told, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    for text in ("1_0", " 1", "\uff11", "1e400"):
        ended = CliRunner().invoke(app, [*words, text])
        assert ended.exit_code == 2
        assert words[-1] in ended.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("release", ["laplace:1_0", "laplace:0.1x1_0", "gaussian:1e400"])
def test_a_number_within_an_argument(release):
    """As one that stands alone."""
    ended = CliRunner().invoke(app, ["compose", release])
    assert ended.exit_code == 2
    assert "looks like laplace:0.1" in ended.output


@pytest.mark.slow
def test_every_number_of_every_command_is_read_so():
    """Also of commands that are still to come: their class does it, and not the option."""
    for name in hushed.cli.COMMANDS:
        for each in hushed.cli.load(name).registered_commands:
            assert each.cls is hushed.cli.SpellingCommand
