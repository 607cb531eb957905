"""Certificates that were written to mislead their reader, to break the program, or to keep it."""

import copy
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed import statements
from hushed.accounting._filters import filter_cost, privacy_filters
from hushed.errors import ParameterError
from hushed.fitting._moving_report import NoisyCount
from hushed.ledger._entries import Budget, Entry, digest, write_budget, write_entry
from hushed.statements import _limits
from hushed.statements._kinds import read_record

ROWS = pa.table({"cost": [float(i % 50) for i in range(200)]})
UNIT = hs.populations.Uniform(low=0, high=1)


def put(record, path, value):
    """Give a copy of a record with another value in one place."""
    new = copy.deepcopy(record)
    place = new
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return new


def answer(query):
    """Certify the answer of a query, and give its record."""
    return json.loads(hs.certify(query(hs.table(ROWS)).release(epsilon=5)).record)


def release(mechanism, f):
    """Certify a release, and give its record."""
    return json.loads(hs.certify(hs.release(f, np.linspace(0, 1, 20), mechanism)).record)


def proven(norm):
    return hs.proven_sensitivity(1.0, norm, argument="test")


def test_an_envelope_states_nothing_twice():
    """Another reader takes the first payload, and the certificate in it."""
    pytest.importorskip("cryptography")
    private, public = statements.make_key()
    one, other = (
        statements.sign(hs.certify(hs.table(ROWS).count().release(epsilon=e)), private)
        for e in (1.0, 2.0)
    )
    assert hs.verify(one, key=public).reproduced
    for name in ("payload", "payloadType", "signatures"):
        field = json.dumps({name: json.loads(other)[name]})[1:-1]
        twice = "{" + field + "," + one.lstrip()[1:]
        for key in (public, None):
            with pytest.raises(ParameterError, match=f"states {name} twice"):
                hs.verify(twice, key=key)
    inner = one.replace('"sig":', '"sig": "AAAA", "sig":')
    with pytest.raises(ParameterError, match="states sig twice"):
        hs.verify(inner, key=public)


def test_an_envelope_is_no_certificate_beside():
    """Whoever reads a field of it would read what nobody signed, and `verify` what somebody did."""
    pytest.importorskip("cryptography")
    private, public = statements.make_key()
    known = hs.certify(hs.table(ROWS).count().release(epsilon=1.0))
    envelope = json.loads(statements.sign(known, private))
    other = json.loads(hs.certify(hs.table(ROWS).count().release(epsilon=2.0)).to_json())
    for key in (public, None):
        with pytest.raises(ParameterError, match="names a schema"):
            hs.verify(json.dumps(other | envelope), key=key)
        assert hs.verify(json.dumps(envelope | {"hint": "x"}), key=key).reproduced


BROKEN = {
    "no share of the budget": (
        lambda table: table.count().variance("cost", low=0, high=50),
        ("asked", "query", "aggregates", 1, "weight"),
        5e-324,
    ),
    "fewer quantiles than were asked for": (
        lambda table: table.quantiles("cost", [0.25, 0.5], low=0, high=50),
        ("asked", "query", "aggregates", 0, "probabilities"),
        [0.25],
    ),
    "more quantiles than were asked for": (
        lambda table: table.quantiles("cost", [0.25, 0.5], low=0, high=50),
        ("values", "quantiles_cost", 0),
        [12.5, 25.0, 12.5, 25.0],
    ),
    "a number of rows that is none": (
        lambda table: table.variance("cost", low=0, high=50),
        ("present", "variance_cost", 0),
        None,
    ),
    "a number of rows beyond all doubles": (
        lambda table: table.variance("cost", low=0, high=50),
        ("present", "variance_cost", 0),
        10**400,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_refused_as_one(name):
    """In words, and not by whatever error it causes first."""
    query, path, value = BROKEN[name]
    record = answer(query)
    assert hs.Statement(record=json.dumps(record)).kind == "answer"
    with pytest.raises(ParameterError):
        hs.Statement(record=json.dumps(put(record, path, value)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("index", each) for each in (0.5, 1.0, True, -1, 3)),
        *(("gap", each) for each in (-1.0, 1, True, None, 10**400)),
    ],
)
def test_a_winner_is_a_candidate_that_is_not_behind(name, value):
    """Numbers that no noisy max gives."""
    record = release(hs.NoisyMax(proven("sup"), epsilon=1.0), lambda rows: np.arange(3.0))
    assert hs.Statement(record=json.dumps(record)).kind == "release"
    with pytest.raises(ParameterError):
        hs.Statement(record=json.dumps(put(record, ("value", name), value)))


@pytest.fixture(scope="module")
def checks():
    """Give the records of a check of a population and of one of movements."""
    rows = np.linspace(0, 1, 60)
    s = hs.sample_sensitivity(lambda rows: rows.mean(), UNIT, rows=5, gamma=0.1, workers=1)
    found = (
        hs.check_population(rows, UNIT, epsilon=1.0, tables=39),
        hs.check_movement(lambda rows: rows.mean(), rows, s, epsilon=1.0),
    )
    return [json.loads(hs.certify(each).record) for each in found]


def test_no_chance_is_above_one(checks):
    """Other libraries round the last digits, but not beyond what a chance can be."""
    for record in checks:
        names = [name for name in ("p_value", "caught", "share_at_most") if name in record]
        assert names
        for name in names:
            tried = []
            for value in (1 + 1e-7, 1.000001, -1e-13, -1e-300):
                try:
                    hs.Statement(record=json.dumps(record | {name: value}))
                except ParameterError:
                    continue
                tried.append(value)
            assert not tried


def test_a_check_of_many_pairs_looks_at_the_likely_counts():
    """Of ten million, some thousands; what is left out is counted as if all of it spoke against."""
    law = NoisyCount(pairs=10**7, scale=3.0, step=2.0**-20)
    for share in (0.0, 1e-7, 0.05, 0.5, 1.0):
        counts, chances, beyond = law._likely(share)
        assert counts.size < 60_000
        assert chances.sum() == pytest.approx(1.0, abs=1e-9)
        assert 0 < beyond < 1e-20
    few = replace(law, pairs=3000)
    counts, chances, beyond = few._likely(0.2)
    assert counts.size < 3001
    assert 0.49 < few.at_least(600, 0.2) < 0.51
    every = replace(law, pairs=40)
    counts, chances, beyond = every._likely(0.2)
    assert (counts.size, beyond) == (41, 0.0)


@pytest.mark.slow
def test_names_without_number_are_soon_read():
    """Two hundred thousand of them, which were compared with each other for an hour."""
    record = release(hs.Laplace(proven("l1"), epsilon=1.0), lambda rows: rows.mean())
    many = {f"a{i}": "1" for i in range(200_000)}
    text = json.dumps(record["certificate"] | {"versions": many})
    assert hs.Certificate.from_json(text).versions == many
    with pytest.raises(ParameterError, match="states a7 twice"):
        hs.Certificate.from_json(text.replace('"a70"', '"a7"'))


def test_a_study_adds_up_so_many_laws_and_no_more():
    """Each of some point masses: all of them together would take minutes, or hours."""
    noise = hs.Laplace(proven("l1"), epsilon=1.0)
    part = hs.certify(hs.release(lambda rows: rows.mean(), np.linspace(0, 1, 20), noise))
    record = json.loads(hs.certify_study([part]).record)
    (known,) = record["parts"]
    mass = {"law": "finite", "losses": [(0.0).hex()], "masses": [(1.0).hex()], "count": 1}
    law = mass | {"infinite": (0.0).hex(), "concentrated": (0.0).hex(), "end": None}
    for parts in (
        [known | {"law": [law] * 257}],
        [known | {"law": None, "digest": f"{i:064x}"} for i in range(257)],
        [known | {"law": [law | {"losses": [(0.0).hex()] * 70_000}]}],
    ):
        with pytest.raises(ParameterError, match="point masses"):
            hs.Statement(record=json.dumps(record | {"parts": parts}))


def test_no_number_of_runs_keeps_the_reader():
    """Beyond 2**53 runs SciPy looks for the next whole number among doubles, and never ends."""
    report = hs.audit(
        lambda rows, rng, size: rng.laplace(size=size) + rows[0],
        [([0.0], [1.0])],
        claim=hs.Guarantee(epsilon=1.0),
        samples=400,
        batch=True,
        workers=1,
    )
    record = json.loads(hs.certify(report).record)
    for runs in (10**18, 10**400):
        half = runs // 2
        seen = {"samples": half, "other_samples": half, "hits": runs // 4, "other_hits": runs // 5}
        forged = record | {"samples": runs, "weight": 2.0, "outcomes": None}
        forged["witness"] = record["witness"] | seen
        with pytest.raises(ParameterError):
            hs.Statement(record=json.dumps(forged))


@pytest.mark.parametrize("end", ["\n", "\n\n", "\u2028", "\r"])
def test_no_name_of_an_audit_is_a_line_of_its_own(end):
    """Nor a paragraph with a heading, as those that the program writes."""
    told = f"a{end}What is promised: all"

    def noisy(rows, rng, size):
        return rows[0] + rng.laplace(scale=9.0, size=size)

    report = hs.audit(
        noisy, [([1.0], [0.0])], claim=hs.Guarantee(epsilon=3), samples=200, batch=True, workers=1
    )
    record = json.loads(hs.certify(report).record)
    record = put(record, ("witness", "event"), told)
    record = put(put(record, ("witness", "pair"), told), ("tried",), [told])
    words = hs.Statement(record=json.dumps(record)).explain()
    assert "What is promised: all" in words
    assert not any(line.startswith("What is promised") for line in words.splitlines())


def write_long_report(charges, law_of, stored=""):
    """Write the report of a ledger whose charges are of different laws, by hand."""
    limit = hs.Guarantee(epsilon=700.0, delta=1e-6)
    filters = privacy_filters(limit.epsilon, limit.delta)
    opened = "2027-01-01T00:00:00.000000+00:00"
    budget = Budget(
        name="b", limit=limit, method="adaptive", filters=filters, note="", opened=opened
    )
    link = digest("", write_budget(budget))
    told = {"schema": "hushed report", "version": 1, "budget": json.loads(write_budget(budget))}
    told |= {"digest": link, "entries": [], "answers": {}}
    for number in range(1, charges + 1):
        promise = hs.Guarantee(epsilon=1e-3)
        entry = Entry(
            budget="b",
            number=number,
            guarantee=promise,
            law=law_of(number),
            costs=tuple(filter_cost(each, promise, None) for each in filters),
            note="",
            at=opened,
        )
        link = digest(link, write_entry(entry))
        told["entries"].append(json.loads(write_entry(entry)) | {"digest": link})
        told["answers"] |= {str(number): stored} if stored else {}
    return json.dumps(told)


def name_law(kind, number, parts=1):
    """Describe a law of some parts, all of them others than those of another number."""
    sizes = [(1e-7 + (64 * number + i) * 1e-12).hex() for i in range(parts)]
    return [{"law": kind, "bound": size, "count": 1} for size in sizes]


@pytest.mark.parametrize(
    ("charges", "law_of"),
    [
        (2_001, lambda n: name_law("bounded-range", n)),
        (32, lambda n: name_law("bounded-range", n, 64)),
        (16, lambda n: name_law("laplace", n, 64)),
    ],
)
def test_a_report_of_too_many_different_laws_is_refused_before_one_is_priced(
    charges, law_of, monkeypatch
):
    """Thousands of different laws would be priced for hours."""
    monkeypatch.setattr("hushed.statements._limits._MOST_PARTS", 1_000 if charges == 16 else 10**5)
    monkeypatch.setattr("hushed.statements._budgets.price_entry", lambda *_: pytest.fail("priced"))
    with pytest.raises(ParameterError, match=r"at most 1(00)?,000 different laws"):
        hs.Statement(record=write_long_report(charges, law_of))


def test_a_report_says_which_laws_were_not_compared(monkeypatch):
    """Laws of several parts beyond the first ones; the same one again takes no time."""
    asked = []
    compare = _limits.is_stronger
    monkeypatch.setattr(_limits, "is_stronger", lambda *given: asked.append(1) or compare(*given))
    told = hs.Statement(record=write_long_report(40, lambda n: name_law("laplace", n % 36, 2)))
    assert len(asked) == 32
    words = told.explain()
    assert "the smaller loss was counted: entry 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 26 more." in words
    unknown = words.partition("it was not worked out whether")[2]
    assert "their laws have several parts: entry 33, 34, 35, 36." in unknown


@pytest.mark.slow
def test_a_report_reads_so_many_answers_and_says_so(monkeypatch):
    """The last ones; what is not read is not said to be nothing."""
    read = []
    monkeypatch.setattr(
        "hushed.statements._budgets.describe_stored", lambda *given: read.append(given) or "known"
    )
    monkeypatch.setattr("hushed.statements._limits._MOST_ANSWERS", 50)
    told = hs.Statement(record=write_long_report(51, lambda n: None, "{}"))
    assert len(read) == 50
    (table,) = read_record(told.record).tables
    assert table.lines[1][-1] == "known"
    assert table.lines[-1][-1].startswith("an answer, which was not read here")
    read.clear()
    hs.Statement(record=write_long_report(9, lambda n: None, "x" * 1_000_000))
    assert len(read) == 4
    read.clear()
    long = hs.Statement(record=write_long_report(3, lambda n: None, "x" * 4_000_001))
    assert (len(read), "not read here" in str(read_record(long.record).tables)) == (0, True)
    assert _limits.choose_read({1: "a", 2: "b", 3: "x" * 4_000_001}) == {1, 2}
