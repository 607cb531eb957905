"""What whoever asks a table is told: by its header and noisy numbers, and never by rows."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import HushedWarning, ParameterError
from hushed.tables._distances import show_part

SEMICOLONS = "semicolons"


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("cell", ["4562,72", "4562.72"])
@pytest.mark.parametrize(
    ("delimiter", "types", "told"),
    [
        (";", {"cost": "float"}, True),
        (";", {"day": "date"}, True),
        (";", {"day": "timestamp"}, True),
        (";", {"cost": "string"}, False),
        (";", {}, False),
        (",", {"cost": "float", "day": "date"}, False),
    ],
)
def test_semicolons_with_numbers_are_told_whatever_the_cells_hold(
    tmp_path, delimiter, types, told, cell
):
    """When the file is opened, with each price and with the answer."""
    names = delimiter.join(["who", "day", "cost"])
    path = write(tmp_path / "a.csv", f"{names}\n1{delimiter}2025-05-20{delimiter}{cell}\n")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        table = hs.table(path, types=types)
    assert sum(SEMICOLONS in str(each.message) for each in seen) == told
    asked = table.count()
    assert any(SEMICOLONS in each for each in asked.quote(epsilon=1.0).warnings) == told
    assert any(SEMICOLONS in each for each in asked.release(epsilon=1.0).warnings) == told


def test_the_delimiter_of_a_given_header_counts(tmp_path):
    path = write(tmp_path / "a.csv", "1;4562,72\n")
    with pytest.warns(HushedWarning, match=SEMICOLONS):
        hs.table(path, header="who;cost", types={"cost": "float"})


def test_of_many_columns_the_first_ones_are_named(tmp_path):
    names = [f"c{i}" for i in range(40)]
    path = write(tmp_path / "a.csv", ";".join(names) + "\n")
    with pytest.warns(HushedWarning, match=r"Of c0, .*, c9 and 30 more, numbers"):
        hs.table(path, types=dict.fromkeys(names, "float"))


def open_rows(rows=500):
    cells = [float(i % 7) for i in range(rows)]
    return hs.table(pa.table({"u": [i // 2 for i in range(rows)], "x": cells}), user="u")


def test_what_cannot_be_told_from_nothing_is_told():
    """A key that is not there, or users and values that cannot be read: counts and sums near 0."""
    table = open_rows().bound_contributions(max_rows_per_user=2)
    for asked in (table.count(), table.count_users(), table.sum("x", low=0, high=6)):
        assert asked.release(epsilon=1000.0).warnings == ()
    nothing = table.filter("x > 100").count().count_users().sum("x", low=0, high=6)
    told = [nothing.release(epsilon=1000.0).warnings for _ in range(6)]
    assert max(map(len, told)) == 3  # each with probability 95 %
    assert all("check the type" in each for some in told for each in some)


def test_groups_that_cannot_be_told_from_nothing_are_counted():
    rows = pa.table({"w": ["A"] * 300})
    asked = hs.table(rows).group_by("w", keys=["A", "B", "C"]).count()
    found = " ".join(w for _ in range(5) for w in asked.release(epsilon=1.0).warnings)
    assert "in 2 of 3 groups it cannot be distinguished from 0" in found


def test_a_guess_that_the_noisy_numbers_contradict_is_told():
    """And one that holds is not; a guess of more rows than there are is none."""
    asked = open_rows().bound_contributions(max_rows_per_user=2).count().count_users()
    low = asked.release(epsilon=100.0, rows_per_user={1: 100}).warnings
    assert [each.partition(":")[0] for each in low] == ["count", "users"]
    assert all("is of 100 " in each for each in low)
    for guess in ({2: 300}, {2: 9000, 7: 3}):
        assert asked.release(epsilon=100.0, rows_per_user=guess).warnings == ()


@pytest.mark.parametrize("whole", [0.3, 0.1, 0.7, 1.0, 1e-6, 3.3])
def test_parts_that_are_shown_add_up_to_no_more_than_the_whole(whole):
    for weights in ([2, 1, 1], [1, 1, 1], [1] * 6, [1] * 7, [5, 3, 2]):
        parts = [whole * each / sum(weights) for each in weights]
        raised = [each * (1 + 2.0**-50) for each in parts]  # as they are, when in doubt
        for some in (parts, raised):
            shown = [show_part(each).removeprefix("about ") for each in some]
            total = sum(map(Decimal, shown))
            assert total <= Decimal(str(whole))
            assert total > Decimal(str(whole)) * Decimal("0.99999")
            assert all(
                abs(Fraction(each) - Fraction(part)) <= Fraction(part) / 10**9
                for each, part in zip(shown, some, strict=True)
            )
    assert show_part(0.15000000000000002) == "about 0.15"
    assert show_part(0.5) == "0.5"


@pytest.mark.parametrize("text", ["day >= 2025-07-01", "day >= 2025-10-12 and x"])
def test_a_date_without_quotation_marks_is_told(text, tmp_path):
    table = hs.table(write(tmp_path / "a.csv", "day,x\n"), types={"day": "date"})
    with pytest.raises(ParameterError, match=r"quotation marks: '2025-|write a date as"):
        table.filter(text)


def test_a_median_is_noted_as_one():
    table = open_rows().bound_contributions(max_rows_per_user=2)
    note = table.median("x", low=0, high=6).query.describe()
    assert note == "query: median(x)"
    assert "quantiles(x)" in table.quantiles("x", [0.2], low=0, high=6).query.describe()


def test_the_value_of_a_median_is_certified_with_its_error():
    table = open_rows().bound_contributions(max_rows_per_user=2)
    told = hs.certify(table.median("x", low=0, high=6).release(epsilon=1.0)).explain()
    assert " ranks]" in told


def test_whoever_asks_a_server_is_sent_to_the_steward_for_a_type():
    with pytest.raises(ParameterError, match=r"ask the steward\): types=\{'w': 'float'\}"):
        hs.table(pa.table({"w": ["A"]})).sum("w", low=0, high=1)
