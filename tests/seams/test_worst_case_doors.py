"""Worst-case mechanisms at their doors: odd cells, huge numbers, subclasses, altered numbers."""

import csv
import json
import math
import sys
import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.cli._private_tables import (
    read_column_of_users,
    read_private_column,
    read_private_table,
)
from hushed.errors import BadFunction, BadRows, ParameterError

ROWS = np.arange(20.0)
MEDIAN = hs.statistics.median(rows=20, low=0, high=30)
COUNTS = hs.proven_sensitivity(
    1.0, "sup", neighbours="add-remove", argument="each row is in one count"
)


@pytest.mark.parametrize(
    "cell",
    ["secret", 10**400, Decimal("sNaN"), 1j, [1.0], None, object()],
    ids=lambda x: str(x)[:9],
)
@pytest.mark.filterwarnings("ignore:the column holds objects")
def test_a_bound_is_found_whatever_one_cell_holds(cell):
    """A refusal because of one row would tell that row, unpaid and with certainty."""
    pandas = pytest.importorskip("pandas")
    for column in ([5.0] * 900 + [cell], pandas.Series([5.0] * 900 + [cell], dtype=object)):
        assert hs.find_bound(column, epsilon=100.0, above=50).value == 8.0


class Talker(float):
    """A number that says what it is when it is read."""

    def __float__(self):
        print(SECRET)
        warnings.warn(SECRET, stacklevel=1)
        return 5.0

    def __repr__(self):
        print(SECRET)
        return "talker"


class Leaver(np.float32):
    """A number that ends the program when it is read."""

    def __float__(self):
        raise SystemExit(SECRET)


class Name:
    """A user or a category that ends the program when it is asked for."""

    def __repr__(self):
        raise SystemExit(SECRET)


class Liar:
    """What says that it is a number, and is none."""

    __class__ = float


class Failing:
    """What fails when it is asked for its class, as a reference to what is gone."""

    @property
    def __class__(self):
        raise ReferenceError(SECRET)


class Stopping:
    """What looks like a stop by the user, when it is asked for its class."""

    @property
    def __class__(self):
        raise KeyboardInterrupt


BLOCKS = hs.Blocks(low=0, high=1, epsilon=30.0, blocks=2)
SECRET = "31337.125"


@pytest.mark.parametrize("held", [list, lambda cells: np.array(cells, dtype=object)])
def test_what_cells_say_is_not_heard(held, capfd):
    """They print, warn and raise what they hold; nothing of it is asked, and nothing fails."""
    median = hs.statistics.median(rows=20, low=0, high=30)

    def released(cell):
        return hs.release(median, held([cell] + [2.0] * 19), hs.Smooth(median, epsilon=1.0))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the column holds objects")  # of the type alone
        assert 0 <= released(Talker(3.0)).value <= 30
        assert hs.find_bound(held([Talker(3.0)] * 20), epsilon=1.0).value > 0
        for cell in (Leaver(3.0), Liar(), Failing(), Stopping()):
            assert 0 <= released(cell).value <= 30
            assert hs.find_bound(held([cell] * 20), epsilon=1.0).value > 0
        for name in (Name(), Liar(), Failing(), Stopping()):
            assert hs.find_bound([1.0], users=held([name]), epsilon=1.0).value > 0
            mode = hs.statistics.mode(["a", "b"], rows=20)
            asked = hs.InverseSensitivity(mode, epsilon=50.0)
            assert hs.release(mode, held([name] + ["a"] * 19), asked).value == "a"
            assert sum(map(len, BLOCKS.split(held([name] * 20)))) == 20
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["31337"] * 40, dtype=pl.Enum(["31337"])),
        pl.Series([{"31337": 1.0}] * 40),
        pd.Series([{"31337": 1.0}] * 40, dtype=pd.ArrowDtype(pa.struct([("31337", pa.float64())]))),
    ],
    ids=["categories", "fields", "fields of Arrow"],
)
def test_a_type_that_is_refused_is_named_without_its_categories_and_fields(column):
    """They may have been found in the rows, as where a reader of files infers them."""
    median = hs.statistics.median(rows=40, low=0, high=1)
    for ask in (
        lambda: hs.release(median, column, hs.Smooth(median, epsilon=1.0)),
        lambda: hs.find_bound(column, epsilon=1.0),
    ):
        with pytest.raises(BadRows, match="column of numbers, got one of another type") as caught:
            ask()
        assert "31337" not in str(caught.value)


def test_a_number_of_a_class_is_the_number_that_it_holds():
    """What the class says instead is code, which may know other rows."""
    assert hs.statistics.maximum(rows=1, low=0, high=30).value([Talker(3.0)]) == 3


@pytest.mark.parametrize("values", [0.0, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_answer_beyond_the_doubles_is_answered(values, sign):
    """Once it is found above, its turn is spent: the gap must be told, and be no error."""
    search = hs.AboveThreshold(sign * 1e300, 1.0, positives=2, values=values)
    found = search.ask(sign * 10**400)
    assert found.above is (sign > 0)
    assert search.left == 2 - found.above
    assert found.gap == (sys.float_info.max if sign > 0 else None)


@pytest.mark.parametrize(
    "make",
    [
        lambda huge: hs.AboveThreshold(huge, 1.0),
        lambda huge: hs.AboveThreshold(-huge, 1.0),
        lambda huge: hs.AboveThreshold(1.0, 1.0, positives=huge),
        lambda huge: hs.statistics.median(low=0, high=huge),
        lambda huge: hs.statistics.median(low=-huge, high=0),
        lambda huge: hs.Smooth(MEDIAN, epsilon=1.0, tail=huge),
    ],
)
def test_integers_beyond_all_doubles_are_refused_in_words(make):
    """Also those that Python does not print."""
    for huge in (10**400, 10**5000):
        with pytest.raises(ParameterError, match=r"finite number|or less"):
            make(huge)


def test_a_tail_that_would_take_minutes_is_refused():
    """Its powers are exact whole numbers, computed after the charge."""
    with pytest.raises(ParameterError, match="1000 or less"):
        hs.Smooth(MEDIAN, epsilon=1.0, tail=100_000)


class OwnQuantile(hs.statistics.Quantile):
    """One that computes something else."""

    def value(self, rows):
        return super().value(rows) * 1000


class OwnDraw(hs.InverseSensitivity):
    """One that draws nothing."""

    def draw(self, rows):
        return float(max(rows))


class OwnTest(hs.ProposeTest):
    """One that never refuses."""

    def draw(self, rows):
        return float(max(rows))


def test_mechanisms_for_sensitivities_name_those_for_statistics():
    """Who gives a statistic to Laplace or Gaussian noise is told what releases it."""
    median = hs.statistics.median(rows=20, low=0, high=30)
    with pytest.raises(ParameterError, match=r"got Quantile; .*InverseSensitivity or hs\.Smooth"):
        hs.Laplace(median, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"got Mode; .*InverseSensitivity or hs\.StableMode"):
        hs.Gaussian(hs.statistics.mode(["a", "b"]), epsilon=1.0, delta=1e-6)


def test_a_subclass_of_a_statistic_is_none_of_ours():
    """Its certificate would promise for every table what only its author could know."""
    own = OwnQuantile(q=0.5, rows=20, low=0, high=30)
    for mechanism in (hs.InverseSensitivity, hs.Smooth):
        with pytest.raises(ParameterError, match="takes a statistic"):
            mechanism(own, epsilon=1.0)
        with pytest.raises(ParameterError, match="takes a statistic"):
            mechanism(hs.statistics.Numeric(low=0, high=1), epsilon=1.0)
    with pytest.raises(ParameterError, match="takes a statistic"):
        hs.ProposeTest(own, bound=1.0, epsilon=1.0, delta=1e-6)


def test_a_subclass_of_its_mechanisms_is_none_of_ours():
    """It is not released under their names."""
    with pytest.raises(ParameterError):
        hs.release(MEDIAN, ROWS, OwnDraw(MEDIAN, epsilon=1.0))
    with pytest.raises(ParameterError):
        hs.release(MEDIAN, ROWS, OwnTest(MEDIAN, bound=7.0, epsilon=1.0, delta=1e-6))


def scores(rows):
    return np.array([rows.size / 2, rows.size / 3, 1.0])


@pytest.mark.parametrize("kind", [hs.Exponential, hs.NoisyMax, lambda s, **k: hs.TopK(2, s, **k)])
def test_what_was_declared_of_scores_is_assumed_in_words(kind):
    """Epsilon would be twice as large without it, and nothing checks it."""
    for monotone in (True, False):
        made = hs.release(scores, ROWS, kind(COUNTS, epsilon=1.0, monotone=monotone))
        assert ("all scores move the same way" in made.certificate.explain()) is monotone


@pytest.mark.parametrize("field", ["grid", "values", "scale", "accuracy"])
@pytest.mark.parametrize("mechanism", [hs.InverseSensitivity, hs.Smooth])
def test_huge_numbers_on_a_certificate_are_refused_in_words(field, mechanism):
    """They come from anybody."""
    loaded = json.loads(
        hs.release(MEDIAN, ROWS, mechanism(MEDIAN, epsilon=1.0)).certificate.to_json()
    )
    for value in (10**400, -(10**400)):
        loaded["mechanism"][field] = value
        with pytest.raises(ParameterError):
            hs.Certificate.from_json(json.dumps(loaded))


def test_a_huge_number_of_values_is_refused_in_words():
    """That of a sampled sensitivity, too."""
    unit = hs.populations.Uniform(low=0, high=1)
    sampled = hs.sample_sensitivity(np.mean, unit, rows=len(ROWS), pairs=20, workers=1)
    made = hs.release(np.mean, np.zeros(len(ROWS)), hs.Laplace(sampled, epsilon=1.0))
    loaded = json.loads(made.certificate.to_json())
    for value in (10**400, -(10**400)):
        loaded["mechanism"]["values"] = value
        with pytest.raises(ParameterError, match="values"):
            hs.Certificate.from_json(json.dumps(loaded))


class Huge:
    """A mechanism whose answer no ledger can hold."""

    name = "huge"
    norms = ("sup",)
    loss = scale = None

    def __init__(self, sensitivity, epsilon):
        self.sensitivity, self.parameters = sensitivity, {"epsilon": epsilon}
        self.guarantee = sensitivity.guarantee(epsilon)

    def accuracy(self, beta=0.05, dims=1):
        return None

    def draw(self, value):
        return 10**5000


def test_an_answer_that_cannot_be_stored_is_a_stored_failure(tmp_path):
    """The charge has its answer: that it failed."""
    with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=2.0, neighbours="add-remove"))
        for _ in range(2):
            with pytest.raises(BadFunction, match="neither a number"):
                hs.release(len, ROWS, Huge(COUNTS, 1.0), ledger, budget="b", key="k")
        assert len(list(ledger.entries("b"))) == 1


def test_rows_beyond_the_last_candidate_are_named_in_the_accuracy():
    """With 1,000 infinite values there are 1,000 rows above the largest candidate."""
    found = hs.find_bound([np.inf] * 1000, epsilon=1.0)
    assert found.value < np.inf
    assert "unless it is the last candidate" in found.certificate.explain()


def mode(**options):
    statistic = hs.statistics.mode(["a", "b"], rows=20)
    return statistic, hs.InverseSensitivity(statistic, epsilon=1.0, **options)


MADE = {
    "default": (MEDIAN, hs.InverseSensitivity(MEDIAN, epsilon=1.0)),
    "given": (
        MEDIAN,
        hs.InverseSensitivity(MEDIAN, epsilon=1.0, candidates=[1, 2, 3], prior=[1, 2, 3]),
    ),
    "mode": mode(prior=[1, 2]),
    "smooth": (MEDIAN, hs.Smooth(MEDIAN, epsilon=1.0, smoothing=0.1)),
    "test": (MEDIAN, hs.ProposeTest(MEDIAN, bound=7.0, epsilon=1.0, delta=1e-6)),
    "stable": (
        hs.statistics.mode(["a", "b"], rows=20),
        hs.StableMode(hs.statistics.mode(["a", "b"], rows=20), epsilon=1.0, delta=1e-6),
    ),
}


@pytest.mark.parametrize("which", MADE)
def test_parameters_of_a_statistic_keep_their_names_and_types(which):
    """No true for 1, no text for a number, nothing more and nothing less."""
    statistic, mechanism = MADE[which]
    loaded = json.loads(hs.release(statistic, ROWS, mechanism).certificate.to_json())
    assert hs.verify(json.dumps(loaded)).reproduced
    stated = loaded["mechanism"]["parameters"]
    others = {}
    for name, value in stated.items():
        others[name] = [5, "x"] if isinstance(value, str) else [str(value), None]
        if not isinstance(value, str):
            others[name] += [int(value)] if type(value) is bool else [True, False]
    altered = [stated | {name: value} for name, tried in others.items() for value in tried]
    altered += [stated | {"more": 1}, {name: stated[name] for name in list(stated)[1:]}]
    for parameters in altered:
        text = json.dumps(loaded | {"mechanism": loaded["mechanism"] | {"parameters": parameters}})
        with pytest.raises(ParameterError):
            pytest.fail(f"{parameters}: {hs.Certificate.from_json(text)}")
    for name in ("unit", "rows"):
        rest = {each: value for each, value in loaded["statistic"].items() if each != name}
        with pytest.raises(ParameterError):
            hs.Certificate.from_json(json.dumps(loaded | {"statistic": rest}))


def test_a_search_finds_one_value():
    """Its accuracy does not depend on how many are stated, so this has to be looked at itself."""
    searches = (hs.find_bound([1.0] * 9, epsilon=1.0), hs.AboveThreshold(1.0, 1.0))
    for search in searches:
        loaded = json.loads(search.certificate.to_json())
        for values in (2, 10**400):
            loaded["mechanism"]["values"] = values
            with pytest.raises(ParameterError):
                hs.Certificate.from_json(json.dumps(loaded))


@pytest.mark.parametrize("cell", ["", "unknown", "nan", "inf", "-1e999", " ", "1;5"])
@pytest.mark.parametrize(
    "words",
    [
        ("statistic", "median", "--low", "0", "--high", "10"),
        ("statistic", "trimmed-mean", "--low", "0", "--high", "10", "--mechanism", "smooth"),
        ("find-bound",),
        ("find-bound", "--user", "who"),
    ],
)
def test_no_cell_of_a_file_keeps_a_release_from_ending(tmp_path, words, cell):
    """As in Python: one row with anything in it is answered like any other."""
    data = tmp_path / "private.csv"
    rows = "".join(f"{place},{place % 10}\n" for place in range(60))
    data.write_text(f"who,cost\n{rows}60,{cell}\n")
    verb, *more = words
    asked = [verb, *more[:1], str(data), *more[1:]] if verb == "statistic" else [verb, str(data)]
    asked += [] if verb == "statistic" else more
    result = CliRunner().invoke(
        app, [*asked, "--column", "cost", "--header", "--epsilon", "1", "--json"]
    )
    assert result.exit_code == 0, result.output
    assert math.isfinite(json.loads(result.stdout)["value"])


@pytest.mark.parametrize("cell", [b"\xff", b"x" * 200_000, b"\x00", b"caf\xe9"])
@pytest.mark.parametrize("words", [("statistic", "median"), ("find-bound", "--user", "who")])
def test_a_cell_that_is_no_text_keeps_no_release_from_ending(tmp_path, words, cell):
    """Bytes that are no UTF-8, and cells longer than readers of CSV expect, are no number."""
    data = tmp_path / "private.csv"
    rows = b"".join(b"%d,%d\n" % (place, place % 10) for place in range(60))
    data.write_bytes(b"who,cost\n" + rows + cell + b"," + cell + b"\n")
    verb, *more = words
    asked = [verb, *more, str(data), "--low", "0", "--high", "10"]
    asked = [verb, str(data), *more] if verb == "find-bound" else asked
    words = ["--column", "cost", "--header", "--epsilon", "1", "--json"]
    result = CliRunner().invoke(app, [*asked, *words])
    assert result.exit_code == 0, result.output
    assert csv.field_size_limit() == 131072


@pytest.mark.parametrize("cell", ["7", "", '""'])
@pytest.mark.parametrize("place", [3, 60])
def test_the_public_number_of_rows_tells_of_no_cell(tmp_path, cell, place):
    """An empty cell of a file of one column is an empty line, and a row all the same."""
    rows = ["5"] * 60
    rows.insert(place, cell)
    (tmp_path / "private.csv").write_text("\n".join(["cost", *rows]) + "\n")
    words = ["statistic", "median", f"{tmp_path}/private.csv", "--low", "0", "--high", "10"]
    result = CliRunner().invoke(app, [*words, "--header", "--epsilon", "1", "--json"])
    assert json.loads(result.stdout)["certificate"]["statistic"]["rows"] == 61


@pytest.mark.parametrize(("q", "wanted"), [("0.4", 0.0), ("0.6", 7.0), ("0.9", 10.0)])
def test_a_file_is_answered_as_its_numbers_are_in_python(tmp_path, q, wanted):
    """What is no number counts as the low end, and what is beyond the doubles as the high one."""
    data = tmp_path / "private.csv"
    data.write_text("cost\n" + "7\n" * 40 + "unknown\n" * 50 + "inf\n" * 30)
    words = ["--low", "0", "--high", "10", "--q", q, "--header", "--epsilon", "900", "--json"]
    result = CliRunner().invoke(app, ["statistic", "quantile", str(data), *words])
    assert json.loads(result.stdout)["value"] == pytest.approx(wanted, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frame", "row"),
    [
        ("numpy", "x,inf"),
        ("pandas", "7,unknown"),
        ("polars", ",7"),
    ],
)
def test_no_cell_of_a_file_keeps_blocks_from_their_answer(tmp_path, frame, row):
    """What is no number is none to the function, and only to the block that it is in."""
    (tmp_path / "f.py").write_text(
        "import numpy as np\n\ndef middle(rows):\n"
        "    return float(np.nanmedian(np.asarray(rows, dtype=float)[:, 1]))\n"
    )
    data = tmp_path / "private.csv"
    data.write_text("who,cost\n" + "7,7\n" * 60 + row + "\n")
    words = ["blocks", str(data), f"{tmp_path}/f.py:middle", "--low", "0", "--high", "10"]
    words += ["--epsilon", "40", "--blocks", "3", "--header", "--frame", frame, "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["value"] == 7.0


class Broken(int):
    """A whole number that cannot be read as one."""

    def __index__(self):
        raise ValueError

    __int__ = __float__ = __index__


class Mute(str):
    """A text that cannot be read as one."""

    __slots__ = ()

    def __str__(self):
        raise ValueError


@pytest.mark.parametrize("kind", ["float", "int", "string"])
@pytest.mark.parametrize("odd", [Leaver, Broken, Mute, Liar, Failing, Stopping])
def test_no_answer_of_a_row_fails_a_chain(kind, odd):
    """A function of rows may give whatever it likes: an error would tell of one row."""
    given = () if odd in (Liar, Failing, Stopping) else ("3",)
    space = hs.spaces.Space(
        domain=hs.spaces.Column(cell=hs.spaces.Cell(low=0, high=9), size=20),
        metric=hs.spaces.CHANGE_ONE,
    )
    cell = hs.spaces.Cell(type=kind, missing=kind != "int")
    chain = space >> hs.transformations.map_rows(lambda row: odd(*given) if row == 7 else row, cell)
    found = chain(np.arange(20.0) % 8)
    assert len(found) == 20
    assert type(np.asarray(found).tolist()[7]) in (float, int, str, type(None))
    keep = space >> hs.transformations.filter_rows(lambda row: odd(*given) if row == 7 else True)
    assert len(keep(np.arange(20.0) % 8)) >= 18


LAW = ("--population", "uniform:0,9")
WORST_CASE = [
    ("statistic", "median", "DATA", "--low", "0", "--high", "10", "--epsilon", "1"),
    ("find-bound", "DATA", "--epsilon", "1"),
    (
        "blocks",
        "DATA",
        "F:middle",
        "--low",
        "0",
        "--high",
        "10",
        "--epsilon",
        "40",
        "--blocks",
        "3",
    ),
    ("posterior", "DATA", "F:near", "--grid", "0:9:10", "--clip", "2", "--epsilon", "1"),
    ("release", "DATA", "F:total", *LAW, "--epsilon", "1", "--gamma", "0.3", "--workers", "1"),
    ("check-population", "DATA", *LAW, "--epsilon", "1", "--tables", "19"),
]
FUNCTIONS = """
import numpy as np

def middle(rows):
    return float(np.nanmedian(np.asarray(rows, dtype=float)[:, -1]))

def near(rows, grid):
    return -abs(np.asarray(rows, dtype=float)[0, -1] - grid)

def total(rows):
    return float(np.nansum(np.asarray(rows, dtype=float)))

def letters(rows):
    return float(sum(len(town) for town in rows["town"] if isinstance(town, str)))

def shortest(rows):
    return float(min(map(len, list(rows["town"]))))

"""


def run_on(folder, text, words, *more):
    """Run a command on private rows."""
    (folder / "f.py").write_text(FUNCTIONS)
    (folder / "private.csv").write_text(text)
    places = {"DATA": str(folder / "private.csv")}
    words = [places.get(w, w).replace("F:", f"{folder}/f.py:") for w in words]
    return CliRunner().invoke(app, [*words, *more, "--json"])


@pytest.mark.parametrize("words", WORST_CASE, ids=lambda words: words[0])
@pytest.mark.parametrize("first", ["SECRETNAME", "5", "cost"])
def test_whether_a_record_names_columns_is_not_guessed(tmp_path, words, first):
    """Whatever the first row holds, the answer is one refusal, which shows none of it."""
    result = run_on(tmp_path, first + "\n" + "5\n" * 30, words)
    assert result.exit_code == 2
    assert "say --header or --no-header" in result.stderr
    assert "SECRETNAME" not in result.output


def test_a_column_that_is_named_is_looked_for_in_the_first_row_only(tmp_path):
    """A name says that there is a header; if it is not there, no cell is shown in its place."""
    found = run_on(tmp_path, "cost\n" + "5\n" * 30, WORST_CASE[0], "--column", "cost")
    assert json.loads(found.stdout)["certificate"]["statistic"]["rows"] == 30
    missed = run_on(tmp_path, "SECRETNAME,9\n" + "5,5\n" * 30, WORST_CASE[0], "--column", "cost")
    assert "has no column 'cost'" in missed.stderr
    assert "SECRETNAME" not in missed.output


@pytest.mark.parametrize("words", [*WORST_CASE[:2], *WORST_CASE[3:]], ids=lambda words: words[0])
@pytest.mark.parametrize("last", ["x", "5"])
def test_a_single_number_decides_of_no_refusal(tmp_path, words, last):
    """A column without any number is answered like one with a number in it."""
    result = run_on(tmp_path, "cost\n" + "x\n" * 30 + last + "\n", words, "--header")
    assert "error" not in json.loads(result.stdout), result.output


ODD = ['"5', '"', "\udcff", '"' + "x" * 200_000, "y" * 200_000, "5,5,5,5", "5", ",", "\x00"]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: ascii(odd[:9]))
@pytest.mark.parametrize("header", [True, False])
def test_a_line_is_a_row_and_affects_no_other(tmp_path, odd, header):
    """No quotation mark, byte or number of cells of one line hides, moves or refuses others."""
    path = tmp_path / "rows.csv"
    lines = ["who,cost"] * header + [f"{i},{i}" for i in range(9)]
    lines.insert(len(lines) - 4, odd)
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    rows = read_private_table(path, header=header, columns=None if header else 2).rows
    assert rows.shape == (10, 2)
    assert np.delete(rows, 5, axis=0).tolist() == [[i, i] for i in range(9)]
    assert len(read_private_column(path, "2", header=header)) == 10
    assert len(read_column_of_users(path, "2", "1", header=header)[1]) == 10


@pytest.mark.parametrize("frame", ["numpy", "pandas", "polars"])
@pytest.mark.parametrize("odd", ["Ann", "", '"7', "nan", "1,2,3,4"])
def test_a_cell_of_a_release_is_neither_refused_nor_shown(tmp_path, frame, odd):
    """What is no number counts as missing, and the end of the public range stands for it."""
    (tmp_path / "public.csv").write_text("cost\n" + "".join(f"{i % 9}.5\n" for i in range(40)))
    words = ["release", "DATA", "F:middle", "--population", str(tmp_path / "public.csv")]
    words += ["--promise", "table", "--bounds", "cost:0,9", "--epsilon", "9", "--gamma", "0.3"]
    words += ["--workers", "1", "--frame", frame]
    result = run_on(tmp_path, "cost\n" + "5\n" * 20 + odd + "\n", words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["certificate"]["sampling"]["rows"] == 21


@pytest.mark.slow_cases("-pandas", "12-pandas", "Rome-pandas")
@pytest.mark.parametrize("frame", ["pandas", "polars"])
@pytest.mark.parametrize("last", ["Rome", "12", ""])
def test_a_public_file_says_what_is_text(tmp_path, frame, last):
    """One cell makes no column of texts one of numbers, nor the other way round."""
    (tmp_path / "public.csv").write_text("town,cost\n" + "Genoa,5\nRome,7\n" * 20)
    words = ["release", "DATA", "F:letters", "--population", str(tmp_path / "public.csv")]
    words += ["--promise", "table", "--epsilon", "9", "--gamma", "0.3", "--workers", "1"]
    for others in ("Genoa", "12", ""):
        text = "town,cost\n" + f"{others},5\n" * 20 + f"{last},5\n"
        result = run_on(tmp_path, text, [*words, "--frame", frame])
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("words", [*WORST_CASE[:2], *WORST_CASE[3:5]], ids=lambda words: words[0])
@pytest.mark.parametrize("text", ["cost\n", ""], ids=["header", "nothing"])
def test_a_private_number_of_rows_may_be_zero(tmp_path, words, text):
    """A table without rows is answered as any other, whether or not it has a header."""
    header = "--header" if text else "--no-header"
    added = ["--neighbours", "add-remove", "--rows", "9"]
    given = added if words[0] == "release" else ["--private-count"]
    given += ["--columns", "1"] if words[0] in ("blocks", "posterior") and not text else []
    result = run_on(tmp_path, text, words, header, *given)
    assert result.exit_code == 0, result.output


@pytest.mark.slow
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_a_number_among_texts_changes_no_other_row(tmp_path, frame):
    """Which columns are of texts is said: one number in them is a text like others."""
    words = ("blocks", "DATA", "F:shortest", "--low", "0", "--high", "10", "--epsilon", "90")
    more = ["--blocks", "3", "--frame", frame, "--header", "--text", "town"]
    result = run_on(tmp_path, "town,cost\n" + "Genoa,1\n" * 30 + "12345,1\n", words, *more)
    assert json.loads(result.stdout)["value"] == 5.0


def test_the_number_of_a_user_tells_of_no_other_row(tmp_path):
    """Names of users in an array are numbers made of each name alone."""
    read = []
    for first in ("", "Ann,1\n"):
        (tmp_path / "rows.csv").write_text(f"who,cost\n{first}Bea,1\nCid,2\nBea,3\n")
        table = read_private_table(tmp_path / "rows.csv", header=True, user="who")
        read.append(table.rows[-3:, 0].tolist())
    assert read[0] == read[1]
    assert read[0][0] == read[0][2] != read[0][1]


def test_the_command_line_names_its_own_way_out_of_a_private_number_of_rows(tmp_path):
    """Options, and no name of Python, where a mechanism does not go with another choice."""
    words = ("statistic", "interquartile-range", "DATA", "--low", "0", "--high", "9")
    more = ["--epsilon", "1", "--private-count", "--header"]
    result = run_on(tmp_path, "cost\n" + "5\n" * 30, words, *more)
    assert result.exit_code == 2
    assert "--mechanism smooth" in result.stderr
    assert "hs." not in result.stderr


@pytest.mark.parametrize("frame", ["numpy", "pandas", "polars"])
def test_names_of_users_are_read_in_a_frame_too(tmp_path, frame):
    """A text that names a user is somebody's, also where nobody said that it is a text."""
    (tmp_path / "rows.csv").write_text("who,cost\nAnn,1\nNan,2\n7,3\nAnn,4\n,5\n")
    table = read_private_table(tmp_path / "rows.csv", frame, header=True, user="who")
    rows = table.rows if frame == "numpy" else table.rows.to_numpy()
    names = rows[:, 0].astype(float)
    assert names[0] == names[3]
    assert len(set(names[:4])) == 3
    assert np.isnan(names[4])


@pytest.mark.parametrize("between", [";", "\t", "|"])
def test_a_header_tells_that_cells_are_separated_by_something_else(tmp_path, between):
    """A header, which is public, is refused before anything is paid for rows without a number."""
    text = f"age{between}cost\n" + f"SECRET{between}5\n" * 30
    for words in (WORST_CASE[0], WORST_CASE[4]):
        result = run_on(tmp_path, text, words, "--header")
        assert result.exit_code == 2
        assert "save it with commas" in result.stderr
        assert "SECRET" not in result.output


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_dates_of_a_parquet_file_stay_dates(tmp_path, frame):
    """Types of a Parquet file are public: what is neither number nor text stays as it is."""
    polars = pytest.importorskip("polars")
    for name in ("private", "public"):
        columns = {"day": [date(2020, 1, 1 + i % 9) for i in range(40)], "town": ["Genoa"] * 40}
        polars.DataFrame(columns).write_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "f.py").write_text(
        "def first(rows): return float(sum(day.day for day in rows['day'] if day.year == 2020))\n"
    )
    words = ["release", f"{tmp_path}/private.parquet", f"{tmp_path}/f.py:first", "--epsilon", "9"]
    words += ["--population", f"{tmp_path}/public.parquet", "--promise", "table", "--gamma", "0.3"]
    result = CliRunner().invoke(app, [*words, "--workers", "1", "--frame", frame, "--json"])
    assert result.exit_code == 0, result.output


def test_no_setting_of_numpy_makes_a_draw_fail_for_a_row():
    """``np.seterr(all="raise")`` makes errors of numbers that underflow: one row would be told."""
    plain = [0.0] * 17 + [0.3] + [1e-300] * 18
    tiny = [0.0] * 17 + [5e-324] + [1e-300] * 18
    made = [
        hs.statistics.median(rows=36, low=0, high=1),
        hs.statistics.median(low=0, high=1),
        hs.statistics.interquartile_range(rows=36, low=0, high=1),
        hs.statistics.trimmed_mean(rows=36, low=0, high=1, trim=0.1),
    ]
    with np.errstate(all="raise"):
        for statistic in made:
            for kind in (hs.Smooth, hs.InverseSensitivity):
                for rows in (plain, tiny):
                    found = hs.release(statistic, rows, kind(statistic, epsilon=1.0))
                    assert 0 <= found.value <= 1
        assert hs.find_bound(tiny, epsilon=1.0).value > 0
