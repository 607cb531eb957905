"""A question about times with a zone, or numbers of single precision, says how they are read."""

import pandas as pd
import pytest

import hushed as hs

_FRAME = pd.DataFrame(
    {
        "seen": pd.to_datetime(["2024-03-01 00:30"] * 20).tz_localize("Europe/Berlin"),
        "plain": pd.to_datetime(["2024-03-01 00:30"] * 20),
        "share": pd.Series([0.1] * 20, dtype="float32"),
        "double": [0.1] * 20,
    }
)


@pytest.fixture(params=["frame", "parquet", "arrow", "database"])
def table(request, tmp_path):
    """The same rows, of which the types are known in each place."""
    if request.param == "frame":
        return hs.table(_FRAME)
    if request.param == "database":
        import duckdb

        with duckdb.connect(str(tmp_path / "x.duckdb")) as made:
            frame = _FRAME  # noqa: F841  (DuckDB finds it by its name)
            made.execute("CREATE TABLE x AS SELECT * FROM frame")
        return hs.table(f"duckdb:///{tmp_path / 'x.duckdb'}", "x")
    path = tmp_path / f"x.{request.param}"
    _FRAME.to_parquet(path) if request.param == "parquet" else _FRAME.to_feather(path)
    return hs.table(path)


def told(asked):
    """What the price and the answer say; both say the same of the types."""
    price, answer = asked.quote(epsilon=50.0).warnings, asked.release(epsilon=50.0).warnings
    assert {*price} <= {*answer}
    return " ".join(price)


@pytest.mark.parametrize(
    "words", ["month(seen) == 2", "seen >= '2024-03-01'", "year(seen) * 12 + month(plain) > 3"]
)
def test_times_with_a_zone_are_said_to_be_in_utc(table, words):
    """Half past midnight in Berlin lies in the day before."""
    found = told(table.filter(words).count())
    assert "Times of seen have a zone and are read in UTC" in found
    assert "plain" not in found


def test_a_number_that_no_cell_of_single_precision_equals_is_said(table):
    """0.1 is no number of single precision."""
    for words in ("share == 0.1", "0.1 != share", "share in [0.5, 0.1]"):
        assert "No cell of share equals 0.1: " in told(table.filter(words).count())
    assert "0.10000000149011612" in told(table.filter("share == 0.1").count())


def test_what_is_read_as_expected_has_no_words(table):
    words = "share == 0.5 or share < 0.1 or double == 0.1 or month(plain) == 3"
    assert told(table.filter(words).count()) == ""
    assert told(table.count()) == ""


@pytest.mark.parametrize("words", ["sex == 'femal'", "sex in ['male', 'femal']", "'femal' != sex"])
def test_a_text_that_no_public_key_equals_is_said(words):
    frame = pd.DataFrame({"sex": ["female", "male"] * 10})
    asked = hs.table(frame).group_by("sex", keys=["female", "male"])
    said = "'femal' is not in the public list of what sex holds; did you mean 'female'"
    assert said in told(asked.filter(words).count())
    assert "public list" not in told(asked.filter("sex == 'female'").count())
    assert "public list" not in told(hs.table(frame).filter(words).count())  # none is known


def test_of_many_texts_that_no_public_key_equals_few_are_named():
    """To look for a name that is nearly the same takes 10 ms for each, of 2 s on a server."""
    frame = pd.DataFrame({"sex": ["female", "male"] * 10})
    asked = hs.table(frame).group_by("sex", keys=["female", "male"])
    found = asked.filter(f"sex in {[f'femal{i}' for i in range(50)]}").count().quote(epsilon=1.0)
    said = [each for each in found.warnings if "public list" in each]
    assert len(said) == 5
    assert any("45 more are not in the list" in each for each in found.warnings)


def test_a_zoned_column_that_is_declared_date_is_said():
    days = hs.table(_FRAME, types={"seen": "date"})
    assert "are read in UTC" in told(days.group_by("seen", keys=["2024-02-29"]).count())
