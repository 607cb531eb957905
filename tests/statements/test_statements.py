"""Certificates of every kind: what follows from a record, and what is forged."""

import copy
import dataclasses
import json
import math
import re
from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.tables.test_query_as_data import asked, build, csv  # noqa: F401

import hushed as hs
from hushed.errors import DamagedLedger, DoesNotHold, NotFound, ParameterError
from hushed.plots._audits import audit_page
from hushed.statements._answers import describe_query
from hushed.statements._budgets import _describe_table
from hushed.statements._certifying import certify_record
from hushed.statements._kinds import read_record
from hushed.statements._readings import Table

ROWS = pa.table(
    {
        "person": [i % 40 for i in range(200)],
        "ward": ["A" if i % 2 else "B" for i in range(200)],
        "cost": [float(i % 50) for i in range(200)],
    }
)
USERS = hs.Guarantee(epsilon=30, neighbours="add-remove", unit="user")


def visits():
    return hs.table(ROWS, user="person").bound_contributions(max_rows_per_user=5)


def mean(rows):
    return rows.mean()


def noisy(rows, rng, size):
    return rows[0] + rng.laplace(scale=1.0, size=size)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """Give a ledger with two answers, a charge by hand, and a release of a function."""
    with hs.Ledger(f"sqlite:///{tmp_path_factory.mktemp('ledger')}/l.db") as book:
        book.open_budget("clinic", USERS)
        book.open_budget("rows", hs.Guarantee(epsilon=3, gamma=0.1))
        query = visits().filter("cost > 1").group_by("ward", keys=["A", "B"])
        query = query.count().mean("cost", low=0, high=50).quantiles("cost", [0.5], low=0, high=50)
        query.release(epsilon=20, ledger=book, budget="clinic", note="yearly")
        visits().count_users().release(epsilon=0.5, ledger=book, budget="clinic", key="people")
        book.charge("clinic", dataclasses.replace(USERS, epsilon=1.0), "by hand")
        box = hs.populations.Uniform(low=0, high=1)
        s = hs.sample_sensitivity(mean, box, rows=50, gamma=0.05)
        hs.release(mean, np.full(50, 0.5), hs.Laplace(s, epsilon=1), book, budget="rows")
        private = np.linspace(0, 1, 1200)
        hs.check_population(private, box, epsilon=0.3, tables=99, ledger=book, budget="rows")
        small = hs.sample_sensitivity(mean, box, rows=5, gamma=0.1)
        hs.check_movement(mean, private, small, epsilon=0.3, ledger=book, budget="rows")
        search = hs.AboveThreshold(50, 0.5, positives=2, values=0.2, ledger=book, budget="rows")
        for answer in (-10_000, 10_000, -20_000, 20_000):
            search.ask(answer)
        yield book


@pytest.fixture(scope="module")
def certificates(ledger):
    """Give one certificate of each kind."""
    answer = hs.certify(1, ledger=ledger, budget="clinic", data="Clinic 2024", actor="Ada")
    other = hs.certify("people", ledger=ledger, budget="clinic", data="Clinic 2024")
    claim = hs.ZeroConcentrated(rho=0.2)
    report = hs.audit(noisy, [([1.0], [0.0])], claim=claim, samples=2000, batch=True, workers=1)
    return {
        "answer": answer,
        "release": hs.certify(1, ledger=ledger, budget="rows"),
        "population-check": hs.certify(2, ledger=ledger, budget="rows"),
        "movement-check": hs.certify(3, ledger=ledger, budget="rows", actor="Ada"),
        "above-threshold": hs.certify(4, ledger=ledger, budget="rows"),
        "audit": hs.certify(report, data="noisy.py:noisy"),
        "study": hs.certify_study([answer, other]),
        "budget": hs.certify_budget(ledger, "clinic", actor="Ada"),
    }


def test_an_answer_says_in_one_sentence_for_whom_its_promise_holds():
    """As a release of a statistic does; and one key is no plural."""
    query = visits().top_k("ward", k=1, keys=["A", "B"], of="users")
    told = hs.certify(query.release(epsilon=1.0)).explain()
    assert "it holds for every table and every person; no population is assumed" in told
    assert "The key with the most users, by ward" in told


def test_how_exact_an_answer_is_begins_with_a_whole_sentence():
    """A decimal point in epsilon ends no sentence."""
    for epsilon in (0.1, 0.25, 2.0):
        told = hs.certify(visits().count().release(epsilon=epsilon)).explain()
        assert "How exact it is: Each error bar holds with probability 95 %" in told


KINDS = (
    *("answer", "release", "population-check", "movement-check", "above-threshold"),
    *("audit", "study", "budget"),
)


def leaves(value, path=()):
    """Paths to all that is no dict and no list."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, each in pairs:
            yield from leaves(each, (*path, name))
    else:
        yield path


def changed(document, path):
    """Change one leaf to another value of its type."""
    new = copy.deepcopy(document)
    place = new
    for name in path[:-1]:
        place = place[name]
    old = place[path[-1]]
    if isinstance(old, bool):
        place[path[-1]] = not old
    elif isinstance(old, int | float):
        place[path[-1]] = old + 1 if math.isfinite(old) else 0.0
    else:
        place[path[-1]] = "x" if old is None else old + "x"
    return new


@pytest.mark.slow_cases("answer", "release")
@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_reads_back_as_it_was_written(certificates, kind):
    """For every kind; promise, digests and what follows stand in the file for other readers."""
    known = certificates[kind]
    told = json.loads(known.to_json())
    assert hs.Statement.from_json(known.to_json()) == known
    assert told["kind"] == known.kind == kind
    assert told["digest"] == known.digest
    assert told["record_digest"] == known.record_digest
    if known.guarantee is not None:
        assert told["guarantee"]["epsilon"] == known.guarantee.epsilon


@pytest.mark.slow_cases("answer", "movement-check", "release")
@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_that_was_changed_is_not_read(certificates, kind):
    """Whichever value: of what was released, of what follows, of who released it and when."""
    told = json.loads(certificates[kind].to_json())
    paths = list(leaves(told))
    rest = [path for path in paths if path[0] != "record"]
    inside = [path for path in paths if path[0] == "record"]
    for path in rest + inside[:: max(1, len(inside) // 40)]:
        with pytest.raises(ParameterError):
            hs.Statement.from_json(json.dumps(changed(told, path)))
    for name in told:
        with pytest.raises(ParameterError):
            hs.Statement.from_json(json.dumps({k: v for k, v in told.items() if k != name}))
    with pytest.raises(ParameterError, match="more"):
        hs.Statement.from_json(json.dumps(told | {"more": 1}))


def forged(known, path):
    """Certify a record of which one value was changed, as a forger does who can make digests."""
    record = changed(json.loads(known.record), path)
    return hs.Statement(record=json.dumps(record), data=known.data, entry=known.entry)


def test_a_forged_answer_does_not_follow_from_its_question(certificates):
    """Every value but remarks; digests are made anew."""
    known = certificates["answer"]
    passed = set()
    for path in leaves(json.loads(known.record)):
        try:
            forged(known, path)
        except ParameterError:
            continue
        passed.add(path[:2])
    allowed = {("warnings", 0), ("warnings", 1)}
    # What the question says elsewhere: rows that are asked about, and columns of no aggregate.
    allowed |= {("asked", "query")}
    assert passed <= allowed


@pytest.mark.parametrize(
    "changes", [{"user": "nobody"}, {"user": ""}, {"columns": {"never": "int"}}], ids=str
)
def test_a_forged_question_names_the_columns_that_it_uses(certificates, changes):
    """Above all the users, whom it promises to protect; and no column that nobody asks about."""
    known = certificates["answer"]
    record = json.loads(known.record)
    query = record["asked"]["query"]
    assert query["user"] in query["columns"]
    query |= changes | {"columns": query["columns"] | changes.get("columns", {})}
    with pytest.raises(ParameterError, match="columns are not those that it uses"):
        hs.Statement(record=json.dumps(record), data=known.data, entry=known.entry)


# What a forger can change unseen without a ledger or a signature; `verify` names all of it.
UNSEEN = {
    "population-check": {"functions", "columns", "population"},
    "movement-check": {"bound", "rows"},
    "above-threshold": {"found", ("certificate", "argument"), ("certificate", "mechanism")},
}


@pytest.mark.slow_cases("movement-check")
@pytest.mark.parametrize("kind", UNSEEN)
def test_a_forged_check_or_search_does_not_follow_from_what_was_drawn(certificates, kind):
    """Every value is changed; sizes, levels, p-values, bounds, verdicts and noise are refused."""
    passed = set()
    record = json.loads(certificates[kind].record)
    for path in leaves(record):
        try:
            forged(certificates[kind], path)
        except ParameterError:
            continue
        passed.add(path[0] if path[0] != "certificate" else path[:2])
    if kind == "population-check":
        # The tables of the null are public: the last one may lie anywhere beyond the one before.
        passed -= {"deviations"}
    context = {("certificate", name) for name in ("charged", "created", "person", "versions")}
    assert passed <= UNSEEN[kind] | context


FORGED = [
    ("population-check", {"p_value": 0.04}, "p_value"),
    ("population-check", {"caught": 0.001}, "caught"),
    ("population-check", {"tv_at_least": 0.5}, "tv_at_least"),
    ("population-check", {"null": "disjoint"}, "null"),
    ("population-check", {"confidence": 0.99}, "confidence"),
    ("population-check", {"level": 0.001}, "deviations"),
    ("population-check", {"public_rows": 10}, "certificate"),
    ("movement-check", {"share_at_most": 0.001}, "share_at_most"),
    ("movement-check", {"share_at_least": 0.2}, "share_at_least"),
    ("movement-check", {"moved": -20.0}, "p_value"),
    ("movement-check", {"pairs": 10**12}, "pairs"),
    ("above-threshold", {"asked": 3}, "not asked"),
    ("above-threshold", {"asked": 9}, "went on"),
    ("above-threshold", {"found": []}, None),
]


@pytest.mark.parametrize(("kind", "changes", "problem"), FORGED)
def test_a_finding_that_was_forged_says_what_does_not_follow(certificates, kind, changes, problem):
    """With digests made anew; fewer answers found above is what a search may have told."""
    known = certificates[kind]
    record = json.dumps(json.loads(known.record) | changes)
    if problem is not None:
        with pytest.raises(ParameterError, match=problem):
            hs.Statement(record=record)
        return
    assert hs.Statement(record=record).subject.found == {}


def test_the_ledger_tells_a_changed_search_from_the_one_that_was_paid(certificates, ledger):
    """A gap that was moved along the grid fits by itself; the ledger stores another one."""
    known = certificates["above-threshold"]
    record = json.loads(known.record)
    record["found"][0]["gap"] += 1.0
    moved = hs.Statement(record=json.dumps(record), entry=known.entry)
    assert hs.verify(moved).reproduced
    assert not hs.verify(moved, ledger=ledger).reproduced
    record["found"][0]["gap"] += 2.0**-21
    with pytest.raises(ParameterError, match="grid"):
        hs.Statement(record=json.dumps(record))


def test_a_search_is_certified_as_far_as_it_has_told(ledger):
    """With a ledger once it has ended, for then its answers are stored; without one at any time."""
    charged = {"ledger": ledger, "budget": "rows"}
    search = hs.AboveThreshold(10, 0.1, positives=3, **charged, note="wards")
    assert search.ask(10_000)
    assert not search.ask(-10_000)
    known = hs.certify(search)
    assert (known.subject.asked, list(known.subject.found)) == (2, [1])
    assert known.guarantee == search.guarantee
    with pytest.raises(ParameterError, match="or is closed"):
        hs.certify(search, **charged)
    search.close()
    stored = hs.certify(search, **charged, data="Clinic")
    assert stored.record == known.record
    assert hs.verify(stored.to_json(), ledger=ledger).reproduced
    report = hs.certify_budget(ledger, "rows").explain()
    assert "wards  1 of 2 answers above 10" in report
    assert "not contradicted, p = " in report
    study = hs.certify_study([stored, hs.certify(3, **charged)], delta=0)
    assert study.guarantee.epsilon == pytest.approx(0.4)


def test_a_bound_that_was_not_a_candidate_is_not_certified():
    """Only a number of the ladder, on its side of zero."""
    record = json.loads(hs.certify(hs.find_bound([1.0] * 999, epsilon=5.0)).record)
    for value in (record["value"] * 1.5, -record["value"], 0.0, 2**60):
        with pytest.raises(ParameterError, match="none of the bounds"):
            hs.Statement(record=json.dumps(record | {"value": value}))


QUESTIONS = {
    ("asked", "query", "max_rows_per_user"): 6,
    ("asked", "query", "aggregates", 1, "high"): 60.0,
    ("asked", "query", "aggregates", 0, "weight"): 2.0,
    ("asked", "query", "user"): None,
    ("asked", "noise"): "gaussian",
    ("asked", "beta"): 0.1,
    ("epsilon",): 0.5,
    ("level",): 0.99,
    ("unit",): "row",
}


@pytest.mark.parametrize("path", QUESTIONS, ids=str)
def test_another_question_has_another_noise(certificates, path):
    """Bounds, weights, unit, noise and epsilon all show in the error bars that are published."""
    record = json.loads(certificates["answer"].record)
    place = record
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = QUESTIONS[path]
    with pytest.raises(ParameterError, match="does not f"):
        hs.Statement(record=json.dumps(record))


def test_a_narrower_error_bar_is_refused(certificates):
    """A value, and a bar of half the width around it, are not those of the noise."""
    record = json.loads(certificates["answer"].record)
    value, low = record["values"]["count"][0], record["low"]["count"][0]
    record["low"]["count"][0] = value - (value - low) / 2
    record["high"]["count"][0] = value + (value - low) / 2
    with pytest.raises(ParameterError, match="error bar"):
        hs.Statement(record=json.dumps(record))


def test_a_moved_value_is_found_by_the_ledger_alone(certificates, ledger):
    """Value and bar moved together follow from the question; the ledger stores another answer."""
    known = certificates["answer"]
    record = json.loads(known.record)
    for name in ("values", "low", "high"):
        record[name]["count"][0] += 100
    moved = hs.Statement(record=json.dumps(record), entry=known.entry)
    assert hs.verify(moved).reproduced
    assert any("charged" in each for each in hs.verify(moved).unchecked)
    found = hs.verify(moved, ledger=ledger)
    assert not found.reproduced
    assert "stores another answer" in found.explain()


@pytest.mark.parametrize("kind", [each for each in KINDS if each not in ("audit", "study")])
def test_the_ledger_agrees_with_what_it_charged(certificates, ledger, kind):
    """Entry, promise and stored answer."""
    f = mean if kind == "release" else None
    found = hs.verify(certificates[kind].to_json(), f, ledger=ledger)
    assert found.reproduced, found.explain()
    assert "the ledger has what was charged" in found.explain()


@pytest.mark.slow
def test_a_certificate_of_an_entry_is_the_same_whenever_it_is_made(ledger, monkeypatch):
    """Of a file and a page that are saved one after the other nobody may think one is forged."""

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2199, 1, 1, tzinfo=tz)

    made = hs.certify("people", ledger=ledger, budget="clinic")
    monkeypatch.setattr("hushed.statements._certifying.datetime", Later)
    assert hs.certify("people", ledger=ledger, budget="clinic") == made
    assert made.entry.at.startswith(made.created.removesuffix("+00:00"))
    assert hs.certify(visits().count_users().release(epsilon=0.5)).created.startswith("2199")


@pytest.mark.parametrize(
    ("at", "created"),
    [
        ("2026-11-28", "2026-11-28T00:00:00+00:00"),
        ("2026-11-28T03:00:00.5+05:00", "2026-11-27T22:00:00+00:00"),
        ("yesterday", None),
    ],
)
def test_the_time_of_an_entry_is_told_in_utc_or_refused(certificates, at, created):
    """An entry may be written by hand, and its chain be whole."""
    known = certificates["answer"]
    entry = dataclasses.replace(known.entry, at=at)
    if created is None:
        with pytest.raises(DamagedLedger, match="cannot be read"):
            certify_record(known.record, entry=entry)
    else:
        assert certify_record(known.record, entry=entry).created == created


def test_another_entry_is_not_the_one_that_was_charged(certificates, ledger):
    """A certificate that names the charge of another answer, or none, is found out."""
    known = certificates["answer"]
    elsewhere = hs.certify("people", ledger=ledger, budget="clinic").entry
    swapped = hs.Statement(record=known.record, entry=elsewhere)
    assert not hs.verify(swapped, ledger=ledger).reproduced
    unnamed = hs.Statement(record=known.record)
    assert "names no entry" in hs.verify(unnamed, ledger=ledger).explain()


def test_an_answer_is_certified_with_the_charge_that_paid_for_it_only(ledger):
    """Not with that of another answer, nor with none."""
    answer = visits().count_users().release(epsilon=0.5)
    with pytest.raises(ParameterError, match="no ledger that stores"):
        hs.certify(answer, ledger=ledger, budget="clinic")
    (paid,) = [hs.Answer.from_json(ledger.answer("clinic", 2))]
    with pytest.raises(ParameterError, match="no ledger that stores"):
        hs.certify(paid, ledger=ledger, budget="clinic")
    with pytest.raises(NotFound, match="no answer is stored"):
        hs.certify(3, ledger=ledger, budget="clinic")
    with pytest.raises(NotFound, match="has the key"):
        hs.certify("nobody", ledger=ledger, budget="clinic")
    with pytest.raises(ParameterError, match="ledger and budget"):
        hs.certify(1)


def test_a_certificate_names_no_place_of_the_rows(tmp_path):
    """The folder of a file is not on it, nor any row that was not asked for."""
    path = tmp_path / "secret-folder-of-visits.csv"
    path.write_text("name,cost\nLindqvist,12345.0\n" + "Ada,1.0\n" * 30)
    answer = hs.table(str(path), types={"cost": "float"}).count().release(epsilon=1)
    text = hs.certify(answer).to_json()
    assert "secret-folder" not in text
    assert "Lindqvist" not in text
    assert "12345" not in text


def test_answers_without_a_question_are_not_certified():
    """As they may be made by hand."""
    answer = visits().count().release(epsilon=1)
    told = json.loads(answer.to_json())
    del told["asked"]
    with pytest.raises(ParameterError, match="does not say what was asked"):
        hs.certify(hs.Answer.from_json(json.dumps(told)))
    with pytest.raises(ParameterError, match="made of one of"):
        hs.certify(3.5)


def test_a_release_is_verified_by_its_own_certificate(certificates):
    """The sampling runs again; another function is found out."""
    known = certificates["release"]
    found = hs.verify(known, mean)
    assert found.reproduced
    assert found.sampling.agreement == "bits"
    other = hs.verify(known, lambda rows: 1.5 * rows.mean())
    assert not other.reproduced
    assert other.agreement == "different"


def test_a_release_of_blocks_and_of_a_statistic_is_certified():
    """Each with its value, and promises that hold for every table."""
    rows = np.linspace(0, 100, 300)
    median = hs.statistics.median(low=0, high=100, rows=300)
    known = hs.certify(hs.release(median, rows, hs.InverseSensitivity(median, epsilon=1)))
    assert known.guarantee == hs.Guarantee(epsilon=1.0)
    assert hs.verify(known).reproduced
    assert "What was released" in known.explain()


def test_an_audit_is_judged_by_its_counts_again(certificates):
    """A verdict, a bound or a count alone does not follow from the others."""
    known = certificates["audit"]
    told = json.loads(known.record)
    assert told["verdict"] == "violated"
    for path, value in (
        (("verdict",), "not refuted"),
        (("certified", "epsilon_low"), told["certified"]["epsilon_low"] * 1.01),
        (("certified", "delta_low"), 0.9),
        (("certified", "measured"), 0.1),
        (("witness", "hits"), told["witness"]["hits"] - 5),
        (("minimum_detectable",), 0.001),
        (("confidence",), 0.99),
        (("stated", "rho"), 0.5),
        (("named",), ["another pair"]),
        (("named",), []),
        (("tried",), told["tried"] * 100),
        (("stated", "neighbours"), "add-remove"),
        (("samples",), 10 * told["samples"]),
        (("failed",), {"runs": 10, "failed": 5}),
        (("samples",), told["witness"]["samples"] - 1),
        (("samples",), -1),
        (("samples",), True),
        (("samples",), None),
        (("seed",), "x"),
        (("seconds",), -1.0),
        (("seconds",), True),
        (("witness", "other_hits"), float(told["witness"]["other_hits"])),
        (("outcomes", "likelier"), told["outcomes"]["likelier"][::-1]),
        (("outcomes", "other"), told["outcomes"]["other"][:-1]),
        (("outcomes", "likelier"), [told["witness"]["samples"]] * 2),
        (("outcomes", "other"), [float(each) for each in told["outcomes"]["other"]]),
        (("outcomes", "other"), [-1, *told["outcomes"]["other"][1:]]),
        (("mode",), "sequential"),
        (("outcomes",), "x"),
    ):
        record = copy.deepcopy(told)
        place = record
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        with pytest.raises(ParameterError):
            hs.Statement(record=json.dumps(record))


def test_an_audit_of_pairs_that_share_a_name_is_read(certificates):
    """Reports did not number them at first; which pairs were tried is what was said, either way."""
    told = json.loads(certificates["audit"].record)
    record = json.dumps(told | {"tried": told["tried"] * 2})
    assert hs.Statement(record=record).subject.tried == ("pair 1", "pair 1")


@pytest.mark.parametrize("kind", ["sequential", "population"])
def test_what_follows_without_the_runs_of_an_audit_is_compared(kind):
    """Of bets, and of a population, no bound follows from the counts, but all of this does."""
    given = {"samples": 9000, "batch": True, "workers": 1, "bits": False}
    if kind == "sequential":
        pairs = [([1.0], [0.0]), ([1.0], [0.9])]
        told = hs.audit(noisy, pairs, claim=hs.Guarantee(epsilon=2.0), sequential=True, **given)
        altered = {
            "minimum_detectable": 0.01,
            "measured": 3.0,
            "tried": ["pair 1"],
            "samples": 1501,
        }
    else:
        drawn = hs.PopulationPairs(
            population=hs.populations.Uniform(low=0, high=1), rows=1, count=5
        )
        claim = hs.Guarantee(epsilon=0.5, gamma=0.3)
        told = hs.audit(noisy, drawn, claim=claim, **given)
        altered = {"share_low": 0.9, "share_high": 0.01, "needed": 1, "drawn": 50, "caught": -1}
        altered |= {"measured": 3.0, "named": ["drawn pair 1"], "samples": 90_000}
        altered |= {"tried": [f"pair {i}" for i in range(9)], "position": "first"}
    record = hs.certify(told).record
    assert hs.Statement(record=record).subject.verdict == "not refuted"
    for name, value in altered.items():
        forged = json.loads(record)
        places = (forged, forged["certified"], forged["population"] or {})
        next(each for each in places if name in each)[name] = value
        with pytest.raises(ParameterError):
            hs.Statement(record=json.dumps(forged))


@pytest.mark.parametrize(
    ("neighbours", "symmetric"), [("replace-one", False), ("add-remove", True)]
)
def test_pairs_of_a_population_are_called_as_such_are(neighbours, symmetric):
    """By number, place, size and what was done: whoever makes up a name is refused."""
    drawn = hs.PopulationPairs(
        population=hs.populations.Uniform(low=0, high=1), rows=3, count=5, symmetric=symmetric
    )
    claim = hs.Guarantee(epsilon=0.5, gamma=0.3, neighbours=neighbours)
    given = {"samples": 9000, "batch": True, "workers": 1, "bits": False}
    told = json.loads(hs.certify(hs.audit(noisy, drawn, claim=claim, **given)).record)
    assert hs.Statement(record=json.dumps(told)).kind == "audit"
    honest = told["tried"]
    pair = told["witness"]["pair"]
    free = next(i for i, name in enumerate(honest) if name != pair)
    one = honest[free]
    done, other = ("replaced", "taken away")[:: 1 if neighbours == "replace-one" else -1]
    made_up = ["another pair", one.replace(" of 3", " of 4"), one.replace(done, other)]
    made_up += [one.replace("row", "user"), one.replace("drawn pair ", "drawn pair 9")]
    made_up += [re.sub(r"row \d", "row 1" if symmetric else "row 4", one), "", one + " "]
    for name in made_up:
        tried = [name if i == free else each for i, each in enumerate(honest)]
        with pytest.raises(ParameterError, match="names of the drawn pairs does not follow"):
            hs.Statement(record=json.dumps(told | {"tried": tried}))


def test_the_certificate_of_an_audit_holds_its_outcomes(certificates):
    """At most 49 groups of them, from which the curve follows; an older file has none."""
    known = certificates["audit"]
    report = known.subject
    assert [sum(each) for each in report.outcomes] == [report.witness.counts.samples] * 2
    shares = np.array(report.outcomes) / report.witness.counts.samples
    gap = np.maximum(shares[0] - shares[1], 0).sum()  # delta at epsilon 0: the distance of both
    assert report.estimate.values[0] == pytest.approx(gap, rel=1e-9)
    told = json.loads(known.record)
    many = told | {"outcomes": {k: v + [0] * 49 for k, v in told["outcomes"].items()}}
    with pytest.raises(ParameterError, match="outcomes does not follow"):
        hs.Statement(record=json.dumps(many))
    del told["outcomes"]
    old = hs.Statement(record=json.dumps(told)).subject
    assert old.outcomes is None
    assert old.estimate is None


@pytest.mark.slow
@pytest.mark.parametrize("sequential", [False, True])
def test_audits_of_epsilon_and_delta_read_back(sequential):
    """Their bounds come from a joint test, or from bets, and their inputs may be answers."""
    claim = hs.Guarantee(epsilon=0.5)
    given = {"claim": claim, "samples": 8000, "batch": True, "workers": 1, "bits": False}
    report = hs.audit(noisy, [([1.0], [0.0])], sequential=sequential, **given)
    known = hs.certify(report)
    assert hs.Statement.from_json(known.to_json()) == known
    said = report.explain().replace("pair 1, [1.0] and [0.0];", "pair 1;")  # no input is stored
    assert said != report.explain()
    assert known.subject.explain().split("\n\n")[:3] == said.split("\n\n")[:3]
    if not sequential:
        record = json.loads(known.record)
        record["certified"]["epsilon_low"] += 0.01
        with pytest.raises(ParameterError, match="epsilon does not follow"):
            hs.Statement(record=json.dumps(record))


def test_no_inputs_are_made_up_for_an_audit_of_answers():
    """They are not written down: a certificate told [0] and [1] for [5.0] and [4.0]."""
    given = {"samples": 2000, "batch": True, "workers": 1, "bits": False, "relation": "answers"}
    report = hs.audit(noisy, [[[5.0], [4.0]]], claim=hs.Guarantee(epsilon=0.5), **given)
    assert "[5.0] and [4.0]" in report.explain()
    known = hs.certify(report)
    assert "pair: pair 1 (1 of 1 query answers moves); event" in known.explain()
    record = json.dumps(json.loads(known.record) | {"moved": [0, 1]})
    with pytest.raises(ParameterError):  # neighbours that are equal are none
        hs.Statement(record=record)


@pytest.mark.slow
def test_bounds_of_an_audit_say_where_they_hold():
    """A claim about a divergence has no delta and no epsilon of its own."""
    report = hs.audit(
        lambda count, rng, size: count[0] + rng.normal(scale=3, size=size),
        [[[1], [0]]],
        claim=hs.ZeroConcentrated(rho=0.05),
        relation="answers",
        samples=1000,
        batch=True,
        bits=False,
        workers=1,
    )
    for told in (hs.certify(report).explain(), audit_page(report)):
        assert " at delta = 0" in told
        assert "at the claimed" not in told


def test_what_a_study_refuses_is_done_by_the_verb_that_is_named():
    """It takes certificates alone; a guarantee that was turned is added up by hs.compose."""
    rows = np.zeros(5)
    mechanisms = [
        hs.Laplace(hs.proven_sensitivity(1.0, neighbours=each, argument="a count"), epsilon=1.0)
        for each in ("replace-one", "add-remove")
    ]
    parts = [hs.certify(hs.release(lambda x: float(len(x)), rows, each)) for each in mechanisms]
    with pytest.raises(ParameterError, match=r"by hs\.compose, with guarantee\.for_replacement"):
        hs.certify_study(parts)
    found = hs.compose([parts[0], parts[1].guarantee.for_replacement()], delta=0)
    assert found.guarantee.epsilon == 3.0


def test_a_study_adds_up_what_its_parts_promise():
    """Pure promises at delta 0 add up; a certificate counts once, and an audit promises nothing."""
    parts = [hs.certify(visits().count().release(epsilon=e)) for e in (1.0, 0.5)]
    study = hs.certify_study(parts, delta=0)
    assert study.guarantee == hs.Guarantee(epsilon=1.5, neighbours="add-remove", unit="user")
    assert [each.digest for each in study.subject.parts] == [each.digest for each in parts]
    with pytest.raises(ParameterError, match="each once"):
        hs.certify_study([parts[0], parts[0]])
    rows = hs.certify(hs.table(ROWS).count().release(epsilon=1))
    with pytest.raises(ParameterError, match="users"):
        hs.certify_study([parts[0], rows])
    record = json.loads(study.record)
    record["parts"][0]["guarantee"]["epsilon"] = (0.1).hex()
    smaller = hs.Statement(record=json.dumps(record))
    assert smaller.guarantee.epsilon == pytest.approx(0.6)  # and names a part that says otherwise


def test_a_budget_lists_every_charge_and_what_it_paid_for(certificates, ledger):
    """Answers with values, charges by hand without one; the limit is what is promised."""
    known = certificates["budget"]
    assert known.guarantee == USERS
    text = known.explain()
    users = hs.Answer.from_json(ledger.answer("clinic", 2)).value("users")
    assert f"users {users} [" in text
    assert "by hand  no answer is stored" in text
    assert json.loads(known.to_json())["facts"]["used"] == ledger.balance("clinic").used
    record = json.loads(known.record)
    record["entries"][0]["costs"][0][0] = (0.1).hex()
    with pytest.raises(ParameterError, match="digest does not fit"):
        hs.Statement(record=json.dumps(record))
    record = json.loads(known.record)
    record["answers"]["2"] = record["answers"]["2"].replace("epsilon", "epsilom")
    altered = hs.Statement(record=json.dumps(record))
    assert not hs.verify(altered, ledger=ledger).reproduced


def test_a_budget_is_certified_whatever_was_stored_in_it(tmp_path):
    """Whoever may append may have stored any text; failures are answers, too."""
    odd = ["", "[1]", "[" * 10**5, '{"schema": "hushed answer"}', '{"schema": ["hushed release"]}']
    failed = '{"schema": "hushed failure", "version": 1, "error": "BadFunction", "message": "x"}'
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as book:
        book.open_budget("clinic", USERS)
        for text in (*odd, failed):
            entry = book.charge("clinic", dataclasses.replace(USERS, epsilon=1.0))
            book.keep_answer("clinic", entry, text)
        known = hs.certify_budget(book, "clinic")
        assert hs.verify(known.to_json(), ledger=book).reproduced
        with pytest.raises(ParameterError):
            hs.certify(1, ledger=book, budget="clinic")
    assert known.explain().count("an answer of another kind") == len(odd)
    assert "it failed, which is an answer, too" in known.explain()


def test_a_budget_says_over_what_its_gamma_is_a_probability(tmp_path):
    """Over the sampler always, on average with one marginal charge; in its certificate, too."""
    gamma = hs.Guarantee(epsilon=0.1, gamma=0.05, estimates=(("a", 0.05),))
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0, gamma=0.2))
        book.charge("b", gamma)
        texts = [hs.certify_budget(book, "b").explain(), book.balance("b").explain()]
        assert not any("average over the sampler" in each for each in texts)
        assert texts[0].count("that of the sampler, and of rows") == 1
        marginal = dataclasses.replace(gamma, estimates=(("b", 0.05),), marginal=True)
        book.charge("b", marginal)
        known = hs.certify_budget(book, "b")
        assert "average over the sampler" in book.balance("b").explain()
    assert known.explain().count("sampler, and of rows") == 1
    assert hs.certify_study([known]).guarantee.marginal


def test_a_promise_for_given_rows_speaks_of_no_others(tmp_path):
    """Of any other new row nothing is promised; of a given one, however unusual, it is."""
    box = hs.populations.Uniform(low=0, high=1)
    asked = {"rows": 20, "gamma": 0.2, "protect": "table", "values": [0.0, 1.0]}
    mechanism = hs.Laplace(hs.sample_sensitivity(mean, box, **asked), epsilon=1.0)
    limit = hs.Guarantee(epsilon=2.0, gamma=0.3, protect="table")
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as book:
        book.open_budget("b", limit)
        one = hs.certify(hs.release(mean, np.full(20, 0.5), mechanism, book, budget="b"))
        whole = hs.certify_budget(book, "b")
    proven = hs.proven_sensitivity(0.1, "l1", argument="a mean of values in [0, 1]")
    plain = hs.certify(hs.release(mean, np.full(20, 0.5), hs.Laplace(proven, epsilon=1.0)))
    for known in (one, whole, hs.certify_study([one]), hs.certify_study([one, plain])):
        told = known.explain()
        assert "whether it or a new one among those given is in the table" in told
        assert "of new rows that were not given nothing is promised" in told
        assert "which of two rows" not in told
        assert "with one row replaced:" not in told
    assert "which of two rows" in plain.explain()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.1), (4.0, 1e-3), (0.0, 0.5)])
def test_no_guess_is_better_than_a_page_says(epsilon, delta):
    """Brute force over all events of the worst mechanism with this promise reaches it, no more."""
    from hushed.statements._words import guess_right

    keep = 1 - delta
    odds = math.exp(epsilon) / (1 + math.exp(epsilon))
    one = [delta, keep * odds, keep * (1 - odds), 0.0]  # tells all, or answers at random
    other = [0.0, keep * (1 - odds), keep * odds, delta]
    best = max(
        sum(one[i] if event >> i & 1 else other[i] for i in range(4)) / 2 for event in range(16)
    )
    said = guess_right(hs.Guarantee(epsilon=epsilon, delta=delta))
    assert best - 1e-12 <= said <= best + 1e-9


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "hushed statement"}', "\udcff", "[" * 10**5, b"\xff", 7]
)
def test_what_is_no_certificate_is_refused(text):
    """Clearly, and whatever it is."""
    with pytest.raises(ParameterError):
        hs.Statement.from_json(text)


@pytest.mark.slow
def test_no_field_is_stated_twice(certificates):
    """Other readers may take the other one."""
    text = certificates["answer"].to_json()
    with pytest.raises(ParameterError, match="twice"):
        hs.Statement.from_json(text.replace('"actor": "Ada"', '"actor": "Bob", "actor": "Ada"'))


def test_texts_that_nobody_could_read_again_are_refused(certificates):
    """Half of a pair of surrogates, and what is no text."""
    record = certificates["answer"].record
    for name in ("data", "note", "actor"):
        for text in ("\ud800", 3, "x" * 10_001):
            with pytest.raises(ParameterError, match=name):
                hs.Statement(record=record, **{name: text})


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_says_no_more_than_its_kind(certificates, kind):
    """What this version would not write is not certified: a reader could take it for a promise."""
    record = json.loads(certificates[kind].record) | {"note": "and nothing else was released"}
    with pytest.raises(ParameterError, match=r"says more|of this version"):
        hs.Statement(record=json.dumps(record))


def test_groups_and_outputs_stay_in_the_order_of_the_question():
    """Objects of JSON have none; two keys that change places would be other groups."""
    rows = pa.table({"z": ["p", "q"], "a": ["p", "q"]})
    query = hs.table(rows).group_by("z", "a", keys={"z": ["p", "q"], "a": ["q", "p"]})
    answer = query.count(name="second").count(name="first").release(epsilon=1)
    known = hs.Statement.from_json(hs.certify(answer).to_json())
    assert list(known.subject.keys) == ["z", "a"]
    assert list(known.subject.values) == ["second", "first"]
    assert known.subject.values == answer.values
    assert "z  a  second  first" in known.explain()


NASTY = [
    visits().top_k("ward", k=1, keys=["A", "B"], of="users"),
    visits().group_by("ward", select_partitions=True).count(),
    visits().sum("cost", low=0, high="search").variance("cost", low=0, high=50),
    visits().histogram("cost", low=0, high=50, bins=3).derive("half", "cost / 2").count(),
]


@pytest.mark.parametrize("query", NASTY, ids=lambda query: query.query.describe())
def test_every_kind_of_question_is_certified(query):
    """Tops, keys found with noise, searched bounds, histograms."""
    private = query.keys.values is None
    answer = query.release(epsilon=20, delta=1e-3 if private else 0)
    known = hs.certify(answer)
    assert hs.Statement.from_json(known.to_json()) == known
    assert hs.verify(known).reproduced


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(drawn=asked())
def test_every_random_answer_follows_from_its_question(csv, drawn):  # noqa: F811
    """Whatever was released is certified and loaded: no check refuses an honest answer."""
    _, table = build(csv, drawn)
    delta = 1e-2 if table.keys.values is None else 0
    known = hs.certify(table.release(epsilon=3.0, delta=delta))
    assert hs.Statement.from_json(known.to_json()) == known


@pytest.mark.slow
def test_a_report_of_a_long_history_works_out_a_few_moments_of_it(tmp_path):
    """With the rule pld each takes half a second: a thousand charges took minutes to certify."""
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=9.0, delta=1e-6), method="pld")
        for _ in range(23):
            book.charge("b", hs.Guarantee(epsilon=0.01))
        report = hs.certify_budget(book, "b").subject
    assert len(report.entries) == 23
    numbers = [each.number for each in report.history]
    assert len(numbers) <= 11
    assert (numbers[0], numbers[-1]) == (0, 23)
    assert report.history[-1].used == report.balance.used


ODD = hs.table(pa.table({"cost": [-70.0] * 9 + [None] * 90 + [9.0] * 900 + [1e300] * 9_000}))


def ask_odd(query):
    """Release a query of the odd table, nearly without noise; give its numbers and its words."""
    found = query(ODD).release(epsilon=1e4)
    asked = next(each for each in hs.certify(found).explain().split("\n\n") if "asked" in each)
    return [found.value(name) for name in found.values], asked


@pytest.mark.filterwarnings("ignore::hushed.errors.HushedWarning")
def test_a_certificate_says_what_was_done_with_values_outside_and_missing_ones():
    """The numbers behave as the words say, for every kind of output that has bounds."""
    (bins,), words = ask_odd(lambda t: t.histogram("cost", low=5, high=25, bins=4))
    assert bins == pytest.approx([909, 0, 0, 9_000], abs=1)
    assert "from 5 to 25 (values outside count in the first or the last bin)" in words
    assert "Missing values are left out." in words
    (total,), words = ask_odd(lambda t: t.sum("cost", low=5, high=25))
    assert total == pytest.approx(9 * 5 + 900 * 9 + 9_000 * 25, abs=2)
    assert "(values moved into 5 to 25). Missing values count as 0 in a sum." in words
    query = lambda t: t.sum("cost", low=5, high=25).mean("cost", low=5, high=25)  # noqa: E731
    numbers, words = ask_odd(query)
    assert numbers[-1] == pytest.approx((9 * 5 + 900 * 9 + 9_000 * 25) / 9_909, abs=0.1)
    assert "count as 0 in a sum and are left out of the others." in words
    (least,), words = ask_odd(lambda t: t.quantiles("cost", [0.05], low=5, high=25))
    assert least == pytest.approx(9, abs=0.5)
    assert "(values moved into 5 to 25). Missing values are left out." in words
    assert "Missing" not in ask_odd(lambda t: t.count())[1]


def test_a_certificate_of_a_mode_or_a_bound_says_what_does_not_count():
    """Rows without a public category, and cells that hold no number."""
    mode = hs.statistics.mode(["a", "b"])
    rows = np.array(["other"] * 900 + ["b"] * 300)
    for mechanism in (
        hs.StableMode(mode, epsilon=1, delta=1e-3),
        hs.InverseSensitivity(mode, epsilon=1),
    ):
        found = hs.release(mode, rows, mechanism)
        assert found.value == "b"
        told = hs.certify(found).explain()
        assert "Rows that hold none of the public categories did not count." in told
    for side in ("high", "low"):
        cells = np.array([np.nan] * 900 + [3.0 if side == "high" else -3.0] * 300)
        drawn = [hs.find_bound(cells, epsilon=50, side=side) for _ in range(6)]
        found = min(drawn, key=lambda each: abs(each.value))  # one in a hundred ends beyond 9
        assert 2 < abs(found.value) < 9
        assert "missing or no number lies beyond none" in hs.certify(found).explain()


def test_a_record_is_read_once(ledger):
    """To read one is to plan its question again; what is made of it reads what was remembered."""
    read_record.cache_clear()
    made = hs.certify(1, ledger=ledger, budget="clinic")
    assert made.to_json()
    assert made.guarantee is not None
    assert read_record.cache_info().misses == 1


def test_a_certificate_is_read_from_a_path(tmp_path):
    """A text is the certificate itself, and the name of a file is said to be none."""
    s = hs.proven_sensitivity(0.02, argument="a mean of 50 numbers in [0, 1]")
    released = hs.release(mean, np.full(50, 0.5), hs.Laplace(s, epsilon=1.0))
    path = tmp_path / "certificate.json"
    path.write_text(released.certificate.to_json(), encoding="utf-8")
    assert hs.verify(path) == hs.verify(released.certificate)
    for name in (str(path), "certificate.json", ""):
        with pytest.raises(ParameterError, match=r"give its path as pathlib\.Path\('FILE'\)"):
            hs.verify(name)
    with pytest.raises(NotFound, match=r"there is no file .*another\.json"):
        hs.verify(tmp_path / "another.json")


def test_an_answer_says_how_it_is_certified():
    """It has no certificate by itself, and other libraries see that it has none."""
    answer = visits().count().release(epsilon=1.0)
    assert not hasattr(answer, "certificate")
    with pytest.raises(AttributeError, match=r"hs\.certify\(answer\) makes it"):
        _ = answer.certificate


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_line_says_what_nobody_looked_at(certificates, ledger, kind):
    """Alone, with the ledger, with a signature; no line says that a given ledger was missing."""
    known = certificates[kind]
    f = mean if kind == "release" else None
    of_ledger = kind not in ("audit", "study")
    alone = hs.verify(known, f).explain().splitlines()[0]
    assert alone.startswith("holds as far as it was checked (record); not checked: ")
    assert ("that it was released and charged" in alone) == of_ledger
    assert "who wrote it" in alone
    if of_ledger:
        found = hs.verify(known, f, ledger=ledger)
        first, *rest = found.explain().splitlines()
        assert first.startswith("holds as far as it was checked (record, ledger); not checked: who")
        assert not any("ledger" in each or "not changed since" in each for each in found.unchecked)
        assert any("ledger has what was charged" in each for each in rest)
    private, public = hs.statements.make_key()
    signed = hs.verify(hs.statements.sign(known, private), f, key=public).explain()
    below = "not checked: " if of_ledger else "what was not checked is said below\n"
    assert signed.startswith(f"holds as far as it was checked (signature, record); {below}")
    assert "who wrote it" not in signed.splitlines()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_file_is_no_bad_use(certificates, kind):
    """It does not hold; a file of another kind or version is merely none that can be read."""
    told = json.loads(certificates[kind].to_json())
    for changed in (told | {"actor": "Eve"}, {n: v for n, v in told.items() if n != "note"}):
        with pytest.raises(DoesNotHold, match="the certificate does not hold: "):
            hs.verify(json.dumps(changed))
    for other in (told | {"version": 2}, told | {"record": {"schema": "hushed dream"}}):
        with pytest.raises(ParameterError) as refused:
            hs.Statement.from_json(json.dumps(other))
        assert not isinstance(refused.value, DoesNotHold)


def test_bounds_that_were_searched_are_told_with_what_was_found():
    """The word for asking stands in no range."""
    rows = visits().sum("cost", low=0, high="search")
    rows = rows.sum("cost", low="search", high="search", name="both")
    answer = rows.sum("cost", low=-1, high="search", name="own").release(epsilon=30.0)
    known = hs.certify(answer)
    told = known.explain()
    assert "to search" not in told
    assert "search to" not in told
    (_, one), two, (_, other) = (answer.bounds[each] for each in answer.values)
    assert f"(values moved into 0 to {one:g}, of which {one:g} was found with noise)" in told
    assert f"to {two[1]:g}, bounds that were found with noise)" in told
    assert f"(values moved into -1 to {other:g}, of which" in told
    assert hs.verify(known.to_json()).reproduced


def test_parts_of_epsilon_are_never_seen_to_add_up_to_something_else():
    """One that is not printed as it is says so; all add up to no more than the whole below."""
    rows = visits()
    for epsilon in (1.0, 0.7, 2.0):
        query = rows.count().count_users().mean("cost", low=0, high=50)
        told = hs.certify(query.release(epsilon=epsilon)).explain()
        parts = re.findall(r"-> epsilon (about )?([0-9.e-]+)$", told, re.M)
        assert len(parts) == 4
        whole, total = Decimal(str(epsilon)), sum(Decimal(each) for _, each in parts)
        assert whole * Decimal("0.999999999") < total <= whole
        assert total == whole or any(about for about, _ in parts)
        assert f"All parts together: epsilon {epsilon:g}." in told
    exact = hs.certify(rows.count().count_users().release(epsilon=1.0)).explain()
    assert exact.count("-> epsilon 0.5\n") == 2


def test_a_certificate_names_budget_limit_and_columns(certificates, ledger):
    """Where nobody named the data set it says so, with the budget; the place is in no record."""
    unnamed = hs.certify(1, ledger=ledger, budget="clinic").explain()
    assert "data set: not named by who certified it; its budget is clinic\n" in unnamed
    assert "data set: Clinic 2024\n" in certificates["answer"].explain()
    assert "counts towards: charge 1 of the budget 'clinic', which keeps epsilon = 30," in unnamed
    assert "Columns that it uses: " in unnamed


def test_a_budget_says_which_part_is_used_up(tmp_path):
    """One whose gamma is spent takes no other estimate, however much epsilon is left."""
    ledger = hs.Ledger(f"sqlite:///{tmp_path / 'g.db'}")
    ledger.open_budget("g", hs.Guarantee(epsilon=6.0, delta=1e-5, gamma=0.1))
    ledger.charge("g", hs.Guarantee(epsilon=2.0, gamma=0.1))
    text = hs.certify_budget(ledger, "g").explain()
    assert "used: 100 %, by gamma (of epsilon 33.4 %)" in text
    assert "gamma left: 0\n" in text
    assert "\ndelta left: " in text
    assert "<th>gamma left</th><td>0</td>" in ledger.balance("g")._repr_html_()


@pytest.mark.parametrize(
    ("head", "said"),
    [(("name", "value"), "2 numbers: a 1; b 2"), (("ward", "count"), "2 groups, ")],
)
def test_a_budget_tells_numbers_with_names_from_groups(head, said):
    """Coefficients of a model were called groups."""
    table = Table(name="released", lines=(head, ("a", "1"), ("b", "2")))
    assert _describe_table(table).startswith(said)


def test_each_condition_is_one_where_several_are_told():
    """Without brackets, `a or b` and then `c` would be read as `a or (b and c)`."""
    either, other = "cost > 1 or cost < 0", "ward == 'A'"
    both = hs.Query.of(visits().filter(either).filter(other).count())
    assert f"only rows where ({either}) and ({other})." in describe_query(both, {})
    assert f"only rows where {either}." in describe_query(
        hs.Query.of(visits().filter(either).count()), {}
    )
