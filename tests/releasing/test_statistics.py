"""Release of a statistic: checked, charged, drawn, stored; a certificate for every table."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed._ground.printing import format_up
from hushed.cli import app
from hushed.errors import BadFunction, BadRows, KeyInUse, Overspent, ParameterError

ROWS = np.arange(1.0, 102.0)
MEDIAN = hs.statistics.median(rows=101, low=1, high=1000)
MODE = hs.statistics.mode(["a", "b", True])
MECHANISMS = {
    "inverse": hs.InverseSensitivity(MEDIAN, epsilon=1.0),
    "lomax": hs.Smooth(MEDIAN, epsilon=1.0),
    "t2": hs.Smooth(MEDIAN, epsilon=1.0, noise="t2"),
    "given": hs.InverseSensitivity(
        MEDIAN, epsilon=1.0, candidates=np.linspace(1, 1000, 50), prior=np.arange(50.0)
    ),
    "test": hs.ProposeTest(MEDIAN, bound=60.0, epsilon=1.0, delta=1e-6),  # refused: 4e-6
}
STABLE = hs.StableMode(MODE, epsilon=1.0, delta=1e-6)


@pytest.fixture
def ledger(tmp_path):
    """Give a ledger with a budget of epsilon 2.5 for each relation."""
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as opened:
        opened.open_budget("public size", hs.Guarantee(epsilon=2.5, delta=1e-5))
        promise = hs.Guarantee(epsilon=2.5, delta=1e-5, neighbours="add-remove")
        opened.open_budget("private size", promise)
        yield opened


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_release_is_charged_stored_and_certified(name, ledger):
    """Epsilon is spent, the answer can be read again, and the certificate comes back from JSON."""
    mechanism = MECHANISMS[name]
    released = hs.release(MEDIAN, ROWS, mechanism, ledger, budget="public size", key="once")
    assert 1 <= released.value <= 1000
    again = hs.release(MEDIAN, ROWS, mechanism, ledger, budget="public size", key="once")
    assert (again.value, again.certificate) == (released.value, released.certificate)
    spent = ledger.balance("public size")
    assert spent.entries == 1
    certificate = released.certificate
    assert certificate.guarantee == hs.Guarantee(epsilon=1.0, delta=1e-6 * (name == "test"))
    assert hs.Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.statistic == MEDIAN.description()
    other = hs.Smooth(MEDIAN, epsilon=0.5)
    with pytest.raises(KeyInUse):
        hs.release(MEDIAN, ROWS, other, ledger, budget="public size", key="once")


def test_what_does_not_fit_is_not_computed(ledger, monkeypatch):
    """The budget refuses before the rows are read as numbers."""
    mechanism = MECHANISMS["lomax"]
    for _ in range(2):
        hs.release(MEDIAN, ROWS, mechanism, ledger, budget="public size")

    def fail(*_):
        raise AssertionError("the rows were read")

    monkeypatch.setattr("hushed.statistics._record.read_numbers", fail)
    with pytest.raises(Overspent):
        hs.release(MEDIAN, ROWS, mechanism, ledger, budget="public size")
    assert ledger.balance("public size").entries == 2


def test_bad_use_costs_nothing(ledger):
    """Another size, another statistic, another relation, rows let pass: refused and unpaid."""
    mechanism = MECHANISMS["inverse"]

    def ask(s=MEDIAN, rows=ROWS, budget="public size", **more):
        hs.release(s, rows, mechanism, ledger, budget=budget, **more)

    with pytest.raises(BadRows, match="for 101 rows, the table has 100"):
        ask(rows=ROWS[:100])
    with pytest.raises(BadRows, match="column of numbers"):
        ask(rows=ROWS.astype(str))
    with pytest.raises(ParameterError, match="made for another statistic"):
        ask(hs.statistics.maximum(rows=101, low=1, high=1000))
    with pytest.raises(ParameterError, match="made for another statistic"):
        ask(np.median)
    with pytest.raises(ParameterError, match="made for another statistic"):
        ask(ROWS)
    with pytest.raises(ParameterError, match="leave outside= out"):
        ask(outside="allow")
    with pytest.raises(ParameterError, match="add-remove"):
        ask(budget="private size")
    with pytest.raises(ParameterError, match="no budget was named"):
        ask(budget=None)
    assert ledger.balance("public size").entries == 0
    assert ledger.balance("private size").entries == 0


def test_a_failure_on_private_rows_stays_paid_for(ledger, monkeypatch):
    """It is stored as an answer, and says nothing of the rows."""

    def fail(*_):
        raise MemoryError("secret")

    monkeypatch.setattr("hushed.statistics._record.read_numbers", fail)
    ask = {"ledger": ledger, "budget": "public size", "key": "k"}
    for _ in range(2):
        with pytest.raises(
            BadFunction, match=r"not drawn \(MemoryError\); the charge stays"
        ) as met:
            hs.release(MEDIAN, ROWS, MECHANISMS["t2"], **ask)
        assert "secret" not in str(met.value)
        assert met.value.__context__ is None
    assert ledger.balance("public size").entries == 1


@pytest.mark.parametrize("rows", [[], ["a"] * 30 + ["b"], ["a", "?", None, 3.5], [True] * 30])
def test_a_mode_is_released_from_any_number_of_rows(rows, ledger):
    """Texts and truth values are stored and read again as they are."""
    mechanism = hs.InverseSensitivity(MODE, epsilon=2.0)
    released = hs.release(MODE, rows, mechanism, ledger, budget="private size")
    assert released.value in MODE.categories
    if len(rows) > 20:
        assert released.value == MODE.value(rows)
        assert type(released.value) is type(rows[0])


REFUSED = {
    "median of two groups": (
        MEDIAN,
        hs.ProposeTest(MEDIAN, bound=60.0, epsilon=1.0, delta=1e-6),  # the other rows: 4e-6
        np.repeat([1.0, 999.0], [51, 50]),
        "public size",
    ),
    "two modes": (MODE, STABLE, ["a"] * 20 + ["b"] * 20, "private size"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_charged_stored_and_certified_like_an_answer(name, ledger, tmp_path):
    """It is None, also when it is read again under its key, and epsilon and delta are spent."""
    statistic, mechanism, rows, budget = REFUSED[name]
    ask = {"ledger": ledger, "budget": budget, "key": "once"}
    released = hs.release(statistic, rows, mechanism, **ask)
    assert released.value is None
    again = hs.release(statistic, rows, mechanism, **ask)
    assert again.value is None
    assert again.certificate == released.certificate
    (entry,) = ledger.entries(budget)
    assert (entry.guarantee.epsilon, entry.guarantee.delta) == (1.0, 1e-6)
    assert '"kind": "refusal"' in ledger.answer(budget, released.entry)
    url = f"sqlite:///{tmp_path}/budget.db"
    told = CliRunner().invoke(app, ["ledger", "answer", url, budget, "once"])
    assert told.stdout.startswith("released: nothing, it was refused\n\n")
    text = released.certificate.explain()
    assert "epsilon = 1, delta = 1e-06, gamma = 0" in text
    assert "there may be none: it is refused where few rows" in text
    assert hs.verify(released.certificate.to_json()).reproduced
    # Nothing of the refusal is in it: where an answer was given it is the same.
    sure = np.full(101, 500.0) if statistic is MEDIAN else ["a"] * 99  # refused 4 times in 10^6
    given = hs.release(statistic, sure, mechanism)
    assert given.value is not None
    bare = {"charged": "", "created": released.certificate.created}
    assert replace(given.certificate, **bare) == replace(released.certificate, **bare)


def test_a_stable_mode_is_told_as_it_is(ledger):
    """A text or a truth value, of any container."""
    for rows, wanted in ((["b"] * 60, "b"), (pd.DataFrame({"x": [True] * 60}), True)):
        released = hs.release(MODE, rows, STABLE, ledger, budget="private size")
        assert released.value is wanted or released.value == wanted
        assert type(released.value) is type(wanted)
    assert "it stays the same, it is refused" in released.certificate.explain()


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("guarantee", "delta"), 1e-9),
        (("guarantee", "epsilon"), 0.5),
        (("mechanism", "scale"), 0.25),
        (("mechanism", "grid"), 1),
        (("mechanism", "values"), 7),
        (("mechanism", "accuracy"), 7.0),
        (("mechanism", "name"), "inverse-sensitivity"),
        (("mechanism", "parameters", "delta"), 1e-9),
        (("mechanism", "parameters", "epsilon"), "1"),
        (("statistic", "rows"), 5),
        (("statistic", "kind"), "quantile"),
        (("sensitivity",), 0.5),
        (("argument",), "inverse sensitivity"),
        (("outside",), "clamp"),
    ],
)
def test_a_certificate_of_a_stable_mode_that_contradicts_itself_is_refused(where, value):
    """One number changed at a time."""
    text = json.loads(hs.release(MODE, ["a"] * 60, STABLE).certificate.to_json())
    inner = text
    for step in where[:-1]:
        inner = inner[step]
    inner[where[-1]] = value
    with pytest.raises(ParameterError):
        hs.Certificate.from_json(json.dumps(text))


@pytest.mark.parametrize("kind", [pd.Series, pl.Series])
def test_a_series_is_a_column(kind):
    """What the answer to "select the column first" gives is released; a text is refused."""
    sure = hs.InverseSensitivity(MEDIAN, epsilon=500.0)
    assert hs.release(MEDIAN, kind(ROWS), sure).value == hs.release(MEDIAN, ROWS, sure).value
    with pytest.raises(BadRows, match="numbers"):
        hs.release(MEDIAN, kind(["a"] * 101), sure)
    with pytest.raises(BadRows, match=r"series\.to_frame\(\) makes a table of it"):
        hs.release(
            np.median, kind(ROWS), hs.Laplace(hs.proven_sensitivity(1.0, argument="x"), epsilon=1.0)
        )


@pytest.mark.parametrize("ends", [(5, 1), (5, 5)])
def test_an_empty_range_is_refused_in_plain_words(ends):
    """The message says which one has to be larger, and nothing of powers of two."""
    low, high = ends
    with pytest.raises(
        ParameterError,
        match=f"high must be above the low end of the range, which is {low}; got {high}$",
    ):
        hs.statistics.median(rows=10, low=low, high=high)


def test_rows_are_not_changed():
    """The statistic works on a copy, in every container."""
    array, frame = ROWS[::-1].copy(), pd.DataFrame({"x": ROWS * 100})
    for rows in (array, frame, ROWS.tolist()):
        hs.release(MEDIAN, rows, MECHANISMS["t2"])
    assert (array == ROWS[::-1]).all()
    assert (frame["x"] == ROWS * 100).all()


def test_the_certificate_says_what_holds_and_what_is_private():
    """No population, no gamma; the error of smooth noise is private and not in it."""
    released = hs.release(MEDIAN, ROWS, MECHANISMS["lomax"])
    text = released.certificate.explain()
    assert "this holds for every table and every row; no population is assumed" in text
    assert "somebody with several is protected less" in text
    assert "costs epsilon again" in text
    assert "The number of rows is public: 101" in text
    assert "Released was the median (q 0.5), by its smooth sensitivity" in text
    assert "gamma = 0" in text
    other = hs.release(MEDIAN, np.full(101, 3.0), MECHANISMS["lomax"]).certificate
    assert replace(other, created=released.certificate.created) == released.certificate


def test_people_are_named_where_they_were_declared():
    """unit="person" says that each row is one person, and that nobody checked it."""
    s = hs.statistics.mode(["a", "b"], unit="person")
    released = hs.release(s, ["a"], hs.InverseSensitivity(s, epsilon=1.0))
    text = released.certificate.explain()
    assert "this holds for every table and every person; no population is assumed" in text
    assert "was declared, and not checked" in text
    assert "The number of rows is private, too" in text
    assert "with the row of one person added or removed" in text


@pytest.mark.parametrize(
    ("name", "unit"), [("inverse", "rows"), ("t2", "smooth sensitivities"), ("stable", "rows")]
)
def test_a_page_names_the_units_of_scale_and_accuracy(name, unit):
    """They are not those of the answer, in which the error is private."""
    from hushed.plots import certificate_page

    mechanism = (MECHANISMS | {"stable": STABLE})[name]
    certificate = hs.release(mechanism.statistic, ROWS, mechanism).certificate
    page = certificate_page(certificate)
    assert f"{format_up(certificate.mechanism.accuracy)} {unit}" in page


@pytest.mark.parametrize("name", MECHANISMS)
def test_verify_follows_everything_from_public_choices(name):
    """Bit for bit, and it names what it cannot check: given candidates have only a fingerprint."""
    certificate = hs.release(MEDIAN, ROWS, MECHANISMS[name]).certificate
    found = hs.verify(certificate.to_json())
    assert found.reproduced
    assert "they hold for every table" in found.explain()
    assert "that this statistic was computed" in found.unchecked
    assert any("fingerprint" in each for each in found.unchecked) == (name == "given")


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("guarantee", "epsilon"), 0.5),
        (("guarantee", "neighbours"), "add-remove"),
        (("guarantee", "gamma"), 0.1),
        (("mechanism", "scale"), 0.25),
        (("mechanism", "accuracy"), 0.25),
        (("mechanism", "grid"), -3),
        (("mechanism", "values"), 7),
        (("mechanism", "name"), "laplace"),
        (("mechanism", "parameters", "epsilon"), 0.5),
        (("statistic", "rows"), None),
        (("statistic", "kind"), "sum"),
        (("statistic", "low"), "private"),
        (("statistic", "unit"), "person"),
        (("statistic",), None),
        (("sensitivity",), 0.5),
        (("neighbours",), "add-remove"),
        (("argument",), "trust me"),
        (("person",), True),
        (("outside",), "allow"),
        (("confirmed",), "bits"),
    ],
)
def test_a_certificate_that_contradicts_itself_is_refused(name, where, value):
    """One number changed at a time."""
    text = json.loads(hs.release(MEDIAN, ROWS, MECHANISMS[name]).certificate.to_json())
    inner = text
    for step in where[:-1]:
        inner = inner[step]
    inner[where[-1]] = value
    with pytest.raises(ParameterError):
        hs.Certificate.from_json(json.dumps(text))


def test_verify_notices_another_fingerprint_of_the_default_candidates():
    """The certificate agrees with itself, but not with the candidates."""
    text = json.loads(hs.release(MEDIAN, ROWS, MECHANISMS["inverse"]).certificate.to_json())
    text["mechanism"]["parameters"]["fingerprint"] = "0" * 64
    assert not hs.verify(json.dumps(text)).reproduced


def test_promises_of_both_kinds_are_composed():
    """Both mechanisms have a guarantee and a loss, as every other one."""
    more = hs.compose([MECHANISMS["inverse"], MECHANISMS["test"]], delta=1e-5)
    assert more.guarantee.epsilon <= 2.0
    total = hs.compose([MECHANISMS["inverse"], MECHANISMS["t2"]], delta=1e-6)
    assert total.guarantee.epsilon <= 2.0
    assert total.guarantee.gamma == 0


def test_a_candidate_of_no_weight_is_not_counted_among_those_it_is_one_of():
    """What is said of the nearest of them would not hold of one that is left out."""
    median = hs.statistics.median(rows=40, low=0, high=1)
    mechanism = hs.InverseSensitivity(
        median, epsilon=1.0, candidates=[0.1, 0.5, 0.7], prior=[1, 1, 0]
    )
    made = hs.release(median, np.full(40, 0.7), mechanism)
    assert made.value in (0.1, 0.5)
    assert made.certificate.mechanism.values == 2
    assert "it is one of 2 public values" in made.certificate.explain()
    again = hs.Certificate.from_json(made.certificate.to_json())
    assert hs.verify(again).reproduced
    default = hs.InverseSensitivity(median, epsilon=1.0, prior=[0] + [1] * 1999)
    known = hs.release(median, np.full(40, 0.7), default).certificate
    assert known.mechanism.values == 1999
    assert hs.verify(known.to_json()).reproduced
    stated = json.loads(known.to_json())
    stated["mechanism"]["parameters"]["least"] = 0.5
    with pytest.raises(ParameterError, match="least"):
        hs.Certificate.from_json(json.dumps(stated))


def test_every_category_of_a_mode_may_win():
    """Where one could not, the certificate would say too much of how exact the answer is."""
    with pytest.raises(ParameterError, match="leave it out"):
        hs.InverseSensitivity(hs.statistics.mode(["a", "b"]), epsilon=1.0, prior=[0, 1])


def test_a_list_of_texts_is_released_as_one_of_low_ends_and_the_certificate_says_so():
    """A refusal would tell of rows, unpaid; so no word depends on them, and the page says so."""
    median = hs.statistics.median(low=5, high=100)
    mechanism = hs.InverseSensitivity(median, epsilon=50.0)
    texts = hs.release(median, ["80", "90"] * 20, mechanism)
    numbers = hs.release(median, [80.0, 90.0] * 20, mechanism)
    assert texts.value < 6
    assert numbers.value > 75
    told = texts.certificate.explain()
    assert told == numbers.certificate.explain()
    assert "a text (also one of digits), counted as the low end" in told
    assert "In a list, or a column of objects, even all rows may be such" in told
    with pytest.raises(BadRows, match="column of numbers"):  # this type is public
        hs.release(median, np.array(["80", "90"] * 20), mechanism)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"f": np.mean}, "no function is run .* leave f out"),
        ({"population": hs.populations.Uniform(low=0, high=1)}, "leave population out"),
        ({"f": hs.statistics.median(low=0, high=2, rows=30)}, "another statistic"),
        ({"f": hs.statistics.trimmed_mean(low=0, high=1, rows=30)}, "another statistic"),
    ],
)
def test_what_verify_would_not_look_at_is_refused(given, words):
    """Whoever gave the wrong function would take it for checked."""
    median = hs.statistics.median(low=0, high=1, rows=30)
    found = hs.release(median, np.linspace(0, 1, 30), hs.InverseSensitivity(median, epsilon=1.0))
    known = found.certificate
    assert hs.verify(known, median).reproduced
    for certificate in (known, hs.certify(found)):
        with pytest.raises(ParameterError, match=words):
            hs.verify(certificate, **given)


def test_a_function_is_refused_wherever_none_is_run():
    """Of a proven sensitivity, of blocks, and of an answer."""
    proven = hs.proven_sensitivity(1.0, neighbours="replace-one", argument="each row counts once")
    found = hs.release(np.sum, np.ones(30), hs.Laplace(proven, epsilon=1.0))
    answer = hs.certify(hs.table(pd.DataFrame({"x": [1, 2, 3]})).count().release(epsilon=1.0))
    assert hs.verify(found.certificate).reproduced
    for certificate in (found.certificate, answer):
        with pytest.raises(ParameterError, match="leave f out"):
            hs.verify(certificate, np.sum)
