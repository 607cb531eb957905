"""The question of a table: what is typed, the two sliders, the preview; no web."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest

import hushed as hs
from hushed._ground.printing import format_up
from hushed._web.composer import edit_fields
from hushed._web.question import read_question
from hushed.server._worker import _tell_quote
from hushed.workbench._views.composer import settle_fields
from hushed.workbench._views.curves import draw_prices
from hushed.workbench._views.preview import MADE_UP, preview_answer
from hushed.workbench._views.pricing import price_question
from hushed.workbench._views.question import Described
from hushed.workbench._views.releases import find_price
from hushed.workbench._views.sentences import spell_field

ROWS = pa.table(
    {
        "patient": [1, 1, 2, 3],
        "ward": ["A", "B", "A", "B"],
        "age": [1, 50, 70, 90],
        "cost": [10.0, 4000.0, 70.0, 20.0],
        "a b": ["x", "y", "x", "y"],
    }
)
ASKED = {
    "group": "ward",
    "keys": "public",
    "stat.1.kind": "count",
    "stat.2.kind": "mean",
    "stat.2.column": "cost",
    "stat.2.weight": "2",
    "where.1.column": "age",
    "where.1.op": ">=",
    "where.1.value": "18",
    "error_of": "mean_cost",
}


@pytest.fixture(scope="module")
def described():
    table = hs.table(ROWS, user="patient")
    return Described(
        table=table,
        budget="stays",
        source="/home/ada/secret/stays.csv",
        kinds={name: kind for name, kind in table.columns.items() if name != "patient"},
        limits={"cost": ("0", "5000"), "age": ("0", "120")},
        keys={"ward": ("A", "B")},
        rows=1000,
        max_rows_per_user=5,
    )


def test_a_form_asks_what_the_methods_of_a_table_ask(described):
    """Groups, conditions, bounds and weights, written by hand beside it."""
    question = read_question(described, ASKED | {"where.2.column": "a b", "where.2.value": "x'y"})
    by_hand = (
        described.table.bound_contributions(max_rows_per_user=5)
        .filter("age >= 18")
        .filter("column('a b') == \"x'y\"")
        .group_by("ward", keys=["A", "B"])
        .count()
        .mean("cost", low=0, high=5000, weight=2)
    )
    assert question.errors == {}
    assert hs.Query.of(question.table) == hs.Query.of(by_hand)
    assert question.terms.rows == 500  # two groups share the thousand


@pytest.mark.parametrize(
    ("typed", "field", "told"),
    [
        ({"stat.3.kind": "median", "stat.3.column": "age", "stat.3.low": "x"}, "low", "number"),
        ({"stat.2.low": "9000"}, "high", "above the lower"),
        ({"where.1.value": "old"}, "where.1.value", "number"),
        ({"where_text": "age >"}, "where_text", "expression"),
        ({"keys": "private"}, "delta", "0.0001 is usual"),
        ({"noise": "gaussian"}, "delta", "above 0"),
        ({"group": "a b"}, "keys", "no public keys"),
        ({"stat.2.weight": "-1"}, "weight", "above 0"),
        ({"stat.3.kind": "mean"}, "stat.3.column", "choose the column"),
        ({"stat.3.kind": "count"}, "stat.3.kind", "count"),
        ({"max_rows": "0"}, "max_rows", "1 or more"),
        ({"stat.3.kind": "top_k", "stat.3.column": "ward"}, "stat.3.kind", "query of its own"),
        ({"stat.2.search": "upper"}, "stat.2.search", "how the bounds are known"),
        (
            {f"where.{i}.column": "age" for i in range(20, 32)}
            | {f"where.{i}.value": "1" for i in range(20, 32)},
            ".value",
            "at most 10 conditions",
        ),
    ],
)
def test_what_cannot_be_asked_is_told_at_its_field(described, typed, field, told):
    """Nothing else is wrong then, and nothing is asked."""
    question = read_question(described, ASKED | typed)
    assert question.table is None
    ((name, message),) = question.errors.items()
    assert field in name
    assert told in message


@pytest.mark.parametrize(
    ("typed", "field", "told"),
    [
        ({"stat.1.k": "3"}, "stat.1.k", "between 1 and the number of keys, 2"),
        ({"stat.1.of": "cells"}, "stat.1.of", "column of people"),
        ({"stat.1.column": "age"}, "stat.1.column", "no public keys"),
        ({"stat.1.column2": "age"}, "stat.1.column2", "no public keys"),
        ({"noise": "gaussian", "delta": "1e-6"}, "noise", "Laplace"),
        ({"delta": "1e-6"}, "delta", "leave it empty"),
    ],
)
def test_a_top_that_cannot_be_asked_is_told_at_its_field(described, typed, field, told):
    """Keys are public, and there are enough of them."""
    asked = {"stat.1.kind": "top_k", "stat.1.column": "ward"} | typed
    question = read_question(described, asked)
    assert question.table is None
    assert told in question.errors[field]


def test_keys_of_two_columns_are_ranked_together(described):
    """All pairs are candidates; the same column twice is that column alone."""
    keys = {"ward": ("A", "B"), "age": (1, 2, 3)}
    two = replace(described, keys=keys)
    asked = {"stat.1.kind": "top_k", "stat.1.column": "ward", "stat.1.column2": "age"}
    question = read_question(two, asked | {"stat.1.k": "6"})
    bounded = described.table.bound_contributions(max_rows_per_user=5)
    by_hand = bounded.top_k("ward", "age", k=6, keys={"ward": ["A", "B"], "age": [1, 2, 3]})
    assert question.errors == {}
    assert hs.Query.of(question.table) == hs.Query.of(by_hand)
    assert "ward and age" in question.labels["rank"]
    preview = preview_answer(two, question, 1.0)
    assert preview.problem == ""
    assert len(preview.lines) == 7
    again = read_question(two, asked | {"stat.1.column2": "ward"})
    assert hs.Query.of(again.table) == hs.Query.of(bounded.top_k("ward", k=2, keys=["A", "B"]))


def test_the_most_frequent_keys_are_asked_by_rows_or_by_people(described):
    """The error is that of the library, and a bound of it gives an epsilon back."""
    asked = {"stat.1.kind": "top_k", "stat.1.column": "ward", "stat.1.of": "users"}
    question = read_question(described, asked)
    bounded = described.table.bound_contributions(max_rows_per_user=5)
    by_hand = bounded.top_k("ward", k=2, keys=["A", "B"], of="users")
    assert question.errors == {}
    assert hs.Query.of(question.table) == hs.Query.of(by_hand)
    live = price_question(question, asked | {"epsilon": "1"}, "epsilon", 3.0)
    error = by_hand.quote(epsilon=1.0).accuracy("rank")
    assert live.sliders.error == format_up(error)
    assert f"at most {format_up(error, 4)} users less than the best one" in live.sentence
    back = price_question(question, asked | {"error": format_up(error)}, "error", 3.0)
    assert back.epsilon <= 1.0


@pytest.mark.slow_cases("low-search-5000")
@pytest.mark.parametrize(
    ("search", "low", "high"),
    [("high", 0, "search"), ("low", "search", 5000), ("both", "search", "search")],
)
def test_bounds_are_found_privately_where_the_form_says_so(described, search, low, high):
    """What was typed for such a bound before is not used, nor is the bound of the page Data."""
    asked = {"stat.1.kind": "sum", "stat.1.column": "cost", "stat.1.search": search, "epsilon": "1"}
    sought = [side for side, bound in (("low", low), ("high", high)) if bound == "search"]
    question = read_question(described, asked | {f"stat.1.{side}": "77" for side in sought})
    bounded = described.table.bound_contributions(max_rows_per_user=5)
    assert hs.Query.of(question.table) == hs.Query.of(bounded.sum("cost", low=low, high=high))
    live = price_question(question, asked, "epsilon", 3.0)
    assert live.errors == {}
    assert live.sliders.choices == ()  # no error is known before the bounds are
    for side in sought:
        assert f"rows beyond the {side} bound" in live.statistics[0].error
    assert preview_answer(described, question, 1.0).problem == ""


def test_a_delta_is_offered_as_long_as_there_is_none(described):
    """The button takes the offer, which is not offered again."""
    fields = ASKED | {"keys": "private", "delta_offer": "0.0001"}
    taken = edit_fields(fields, "use-delta")
    assert taken["delta"] == "0.0001"
    assert "delta_offer" not in taken
    assert read_question(described, taken).errors == {}


def test_a_median_of_a_column_without_bounds_says_that_it_needs_them(described):
    """They are never guessed from the rows."""
    plain = Described(**{**_parts(described), "limits": {}})
    question = read_question(plain, {"stat.1.kind": "median", "stat.1.column": "age"})
    assert "a median needs bounds" in question.errors["stat.1.low"]


def _parts(described):
    return {name: getattr(described, name) for name in Described.__dataclass_fields__}


PRIVATE_KEYS = {"keys": "private", "delta": "1e-6", "max_groups": "2"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "moves"),
    [({}, 50), pytest.param(PRIVATE_KEYS, 50, marks=pytest.mark.slow)],
    ids=["public", "private"],
)
def test_random_moves_never_disagree_with_the_library(described, extra, moves):
    """Epsilon moved: the error is that of quote. Error moved: epsilon is that of quote_for."""
    draw = random.Random(3)
    fields = ASKED | extra
    question = read_question(described, fields)
    terms = {"delta": question.terms.delta, "rows": question.terms.rows}
    for _ in range(moves):
        held = draw.choice(["epsilon", "epsilon-slider", "error", "error-slider"])
        fields |= {
            "epsilon": f"{draw.uniform(0.05, 2):.3g}",
            "epsilon-slider": str(draw.randrange(1001)),
            "error": f"{draw.uniform(400, 2000):.4g}",
            "error-slider": str(draw.randrange(1001)),
        }
        live = price_question(question, fields, held, 3.0)
        assert live.errors == {}
        shown = live.sliders
        quote = question.table.quote(epsilon=live.epsilon, **terms)
        error = quote.accuracy("mean_cost")
        if held.startswith("epsilon") or held == "error-slider":
            assert shown.error == format_up(error)
            assert float(shown.epsilon) == live.epsilon
        if held == "epsilon":
            assert live.epsilon == float(fields["epsilon"])
        if held == "error":
            wanted = float(fields["error"])
            found = question.table.quote_for(errors={"mean_cost": wanted}, **terms)
            assert (shown.error, live.epsilon) == (fields["error"], found.epsilon)
            assert error <= wanted
        fields |= {"epsilon": shown.epsilon, "error": shown.error}


def test_the_slider_ends_at_what_is_left_and_never_beyond(described):
    """The right end is the rest of the budget itself, and an end says why it is there."""
    question = read_question(described, ASKED)
    live = price_question(question, ASKED | {"epsilon-slider": "1000"}, "epsilon-slider", 0.7)
    assert live.epsilon == 0.7
    assert "left of the budget" in live.sliders.end
    free = price_question(question, ASKED | {"epsilon-slider": "1000"}, "epsilon-slider", None)
    assert (free.epsilon, free.sliders.end) == (10.0, "")


def test_the_slider_ends_where_the_noise_does(described):
    """An epsilon that the library refuses is no end of the slider, and its reason is told."""
    gaussian = ASKED | {"noise": "gaussian", "delta": "1e-300"}
    question = read_question(described, gaussian)
    live = price_question(question, gaussian | {"epsilon-slider": "1000"}, "epsilon-slider", None)
    assert live.quote is not None
    assert question.table.quote(epsilon=live.epsilon, **question.terms.as_arguments())


def test_a_wrong_number_in_a_slider_field_is_told_there_and_moves_nothing(described):
    """The text stays as it was typed."""
    question = read_question(described, ASKED)
    for field, typed in (("epsilon", "much"), ("epsilon", "0"), ("error", "-3")):
        live = price_question(question, ASKED | {field: typed}, field, 3.0)
        assert (list(live.errors), live.quote) == ([field], None)
        assert getattr(live.sliders, field) == typed


def test_the_curve_shows_the_errors_that_the_library_quotes(described):
    """Each row of its table is a quote, and the chosen point is the quote at epsilon."""
    question = read_question(described, ASKED)
    live = price_question(question, ASKED | {"epsilon": "0.95"}, "epsilon", 3.0)
    curve = draw_prices(question, live, 3.0)
    head, *rows = curve.table
    assert head == ("epsilon", "error")
    assert len(rows) == 40
    for epsilon, error in rows[::13]:
        quote = question.table.quote(epsilon=float(epsilon), rows=500)
        assert error == format_up(quote.accuracy("mean_cost"), 4)
    assert "at 0.95" in curve.sentence
    assert [shape.kind for shape in curve.shapes].count("disc") == 1


def test_a_preview_is_of_made_up_rows_and_says_so(described, tmp_path):
    """The private table is not asked: where its file is gone, the preview is there all the same."""
    file = tmp_path / "stays.csv"
    file.write_text("patient,ward,age,cost\n1,A,20,5.5\n")
    types = {"patient": "int", "age": "int", "cost": "float"}
    table = hs.table(file, user="patient", types=types)
    kinds = {"ward": "string", "age": "int", "cost": "float"}
    gone = Described(**{**_parts(described), "table": table, "kinds": kinds})
    file.unlink()
    found = preview_answer(gone, read_question(gone, ASKED), 1.0)
    assert (found.headline, found.problem, found.exact) == (MADE_UP, "", ())
    assert [line[0] for line in found.lines] == ["ward", "A", "B"]
    assert [MADE_UP in each.sentence for each in found.pictures] == [True] * 2


def test_a_preview_on_a_public_table_has_the_almost_exact_answer_beside_it(described):
    """Its rows are public, so that they may be shown without noise."""
    public = Described(**{**_parts(described), "public": hs.table(ROWS, user="patient")})
    found = preview_answer(public, read_question(public, ASKED), 1.0)
    assert found.exact[0] == ("ward", "count [noise alone]", "mean_cost [noise alone]")
    assert [line[1].split()[0] for line in found.exact[1:]] == ["1", "2"]  # of age 18 and more


def test_rows_of_the_form_are_added_removed_and_kept(described):
    """Removing a condition leaves the others under their numbers."""
    fields = edit_fields(ASKED, "add-where")
    assert fields["where.2.column"] == ""
    fields = edit_fields(fields | {"stat.3.kind": "sum"}, "remove-stat-2")
    assert [name for name in fields if name.startswith("stat.")] == ["stat.1.kind", "stat.3.kind"]
    assert edit_fields(fields, "largest-0.5")["epsilon"] == "0.5"
    question = read_question(described, ASKED)
    live = price_question(question, ASKED | {"error-slider": "300"}, "error-slider", 3.0)
    kept = settle_fields(ASKED | {"moved": "error-slider"}, live, "error-slider")
    assert (kept["moved"], kept["epsilon"]) == ("error", repr(live.epsilon))


def test_a_price_that_does_not_fit_offers_the_largest_that_does(described, tmp_path):
    """It says what is left; the gauge has no hatched part then."""
    limit = hs.Guarantee(epsilon=1.0, delta=0.0, neighbours="add-remove", unit="user")
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        ledger.open_budget("stays", limit)
        question = read_question(described, ASKED)
        fits = find_price(ledger, "stays", question, question.table.quote(epsilon=0.4, rows=500))
        assert fits.fits
        assert "0.4 of 1" in fits.sentence
        assert fits.after == "Then 0.6 is left: enough for 1 more like this."
        least = find_price(ledger, "stays", question, question.table.quote(epsilon=0.1, rows=500))
        assert least.after == "Then 0.9 is left: enough for 9 more like this."
        whole = find_price(ledger, "stays", question, question.table.quote(epsilon=1.0, rows=500))
        assert "nothing more can be asked" in whole.after
        dear = find_price(ledger, "stays", question, question.table.quote(epsilon=1.5, rows=500))
        assert (dear.fits, dear.largest) == (False, "1")
        assert not [shape for shape in dear.gauge.shapes if shape.look == "hatch"]
        private = read_question(described, ASKED | {"keys": "private", "delta": "1e-6"})
        quote = private.table.quote(epsilon=0.4, delta=1e-6, rows=500)
        tight = find_price(ledger, "stays", private, quote)
        assert (tight.fits, tight.largest) == (False, "")  # no smaller epsilon helps
        assert "1, delta 0 is left" in tight.sentence
        assert ledger.balance("stays").entries == 0


def test_a_guess_that_cannot_be_given_is_not_advised():
    """Pages and a team server take none of the rows of each person: they say what is left out."""
    table = hs.table(ROWS, user="patient").bound_contributions(max_rows_per_user=1)
    quote = table.count().quote(epsilon=1)
    assert "such as rows_per_user={5: 300, 9: 20}" in quote.explain()
    for words in (quote.explain(spell_field), _tell_quote(quote)["words"]):
        assert "are left out, and counts are too low" in words
        assert "public guess" not in words
