"""Certificates of a forger who can make digests: what is refused, found, or said not to hold."""

import copy
import dataclasses
import hashlib
import json
import math
import re

import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.ledger._laws import write_law

USERS = hs.Guarantee(epsilon=9, neighbours="add-remove", unit="user")
ROWS = pa.table({"person": [i % 40 for i in range(200)], "cost": [float(i) for i in range(200)]})
VOTERS = np.full(50, 0.5)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """Give a ledger with a count of rows and one of people."""
    visits = hs.table(ROWS, user="person").bound_contributions(max_rows_per_user=5)
    with hs.Ledger(f"sqlite:///{tmp_path_factory.mktemp('ledger')}/l.db") as book:
        book.open_budget("clinic", USERS)
        visits.count().release(epsilon=2, ledger=book, budget="clinic")
        visits.count_users().release(epsilon=0.5, ledger=book, budget="clinic")
        yield book


@pytest.fixture(scope="module")
def study():
    """Give the certificate of a study of two releases, whose laws are known."""
    moved = hs.proven_sensitivity(1.0, "l2", argument="a mean of values in [0, 1]")

    def release(epsilon):
        noise = hs.Gaussian(moved, epsilon=epsilon, delta=1e-6)
        return hs.certify(hs.release(lambda rows: rows.mean(), VOTERS, noise))

    return hs.certify_study([release(1.0), release(0.01)])


def places(value, path=()):
    """Paths to everything in a document, with the document itself."""
    yield path
    if isinstance(value, dict | list):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*path, name))


def put(document, path, value):
    """Give a copy of a document with another value in one place."""
    if not path:
        return value
    new = copy.deepcopy(document)
    place = new
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return new


@pytest.mark.slow_cases("-Infinity", "NaN")
@pytest.mark.parametrize("odd", ["NaN", "-Infinity", "1e999"])
def test_no_number_that_json_does_not_have_is_read(ledger, study, odd):
    """Wherever it stands: refused as any other text that is no certificate."""
    for known in (hs.certify(1, ledger=ledger, budget="clinic"), study):
        told = json.loads(known.to_json())
        for path in list(places(told))[::3]:
            text = json.dumps(put(told, path, "ODD")).replace('"ODD"', odd)
            with pytest.raises(ParameterError):
                hs.Statement.from_json(text)
    record = json.loads(study.record)
    with pytest.raises(ParameterError):
        hs.Statement(record=json.dumps(put(record, ("parts", 0, "note"), float("nan"))))


def test_a_part_of_a_study_is_not_added_up_as_less_than_it_promises(study):
    """The law of a weaker release beside the promise of a stronger one gives a smaller sum."""
    record = json.loads(study.record)
    assert study.guarantee.epsilon > 0.99
    forged = put(record, ("parts", 0, "law"), record["parts"][1]["law"])
    with pytest.raises(ParameterError, match="as if it promised more"):
        hs.Statement(record=json.dumps(forged))


@pytest.mark.slow
def test_no_truth_value_stands_for_a_number_nor_a_number_for_one(ledger, study):
    """In the cells of an answer, and in the promises of a study and a budget."""
    for record in (
        json.loads(hs.certify(1, ledger=ledger, budget="clinic").record),
        json.loads(study.record),
        json.loads(hs.certify_budget(ledger, "clinic").record),
    ):
        tried = 0
        for path in places(record):
            value = record
            for name in path:
                value = value[name]
            if not isinstance(value, bool | int | float):
                continue
            for other in [0, 1, None, "true"] if isinstance(value, bool) else [True, False]:
                tried += 1
                with pytest.raises(ParameterError):
                    pytest.fail(f"{path}: {hs.Statement(record=rewritten_if(record, path, other))}")
        assert tried > 5


def rewritten_if(record, path, value):
    """Put a value in its place, with the digests of a chain, if there is one."""
    new = put(record, path, value)
    return rewritten(new) if "entries" in new else json.dumps(new)


def test_a_study_says_what_its_promises_make_without_their_laws(study):
    """A law that fits its promise at one delta and is tiny elsewhere was written by anybody."""
    record = json.loads(study.record)
    # With a loss of 2: delta is 1e-6 at epsilon 1.5, and 1e-5 is enough for epsilon 0.
    rare = 1e-6 / (1 - math.exp(1.5 - 2.0))
    forged = hs.privacy_loss.pair([rare, 1 - rare], [rare / math.e**2, 1 - rare / math.e**2])
    for each in record["parts"]:
        promise = hs.Guarantee(epsilon=1.5, delta=1e-6)
        each["guarantee"] |= {"epsilon": promise.epsilon.hex(), "delta": promise.delta.hex()}
        each["law"] = write_law(forged)
    record["delta"] = 1e-5
    known = hs.Statement(record=json.dumps(record))
    assert known.guarantee.epsilon < 0.01
    (alone,) = re.findall("by the promises alone: epsilon ([0-9.]+) at", known.explain())
    assert float(alone) > 2.5


@pytest.mark.parametrize(
    ("name", "value"),
    [("digest", "0" * 63 + "\n"), ("digest", "\u202eabc"), ("kind", "audit"), ("kind", "<b>")],
)
def test_a_part_of_a_study_is_a_certificate_that_promises_something(study, name, value):
    """Named by a digest, and of a kind that there is."""
    record = json.loads(study.record)
    with pytest.raises(ParameterError, match="of no certificate"):
        hs.Statement(record=json.dumps(put(record, ("parts", 0, name), value)))


def test_only_what_one_entry_pays_for_names_one(ledger, study):
    """A budget and a study are charged by no single entry, and none is shown for them."""
    entry = hs.certify(1, ledger=ledger, budget="clinic").entry
    for known in (study, hs.certify_budget(ledger, "clinic")):
        with pytest.raises(ParameterError, match="leave entry out"):
            dataclasses.replace(known, entry=entry)


def test_answers_that_were_left_out_of_a_report_are_found_with_its_ledger(ledger):
    """It would say that nothing is stored where something was released."""
    known = hs.certify_budget(ledger, "clinic")
    assert hs.verify(known, ledger=ledger).reproduced
    record = json.loads(known.record)
    for numbers in (["1"], ["1", "2"]):
        kept = {number: text for number, text in record["answers"].items() if number not in numbers}
        found = hs.verify(
            hs.Statement(record=json.dumps(record | {"answers": kept})), ledger=ledger
        )
        assert not found.reproduced
        assert f"entry {', '.join(numbers)}" in found.explain()


def test_charges_that_were_taken_off_the_end_of_a_report_are_counted_with_its_ledger(ledger):
    """It would say that more is left, as one does that was written before they were made."""
    known = hs.certify_budget(ledger, "clinic")
    record = json.loads(known.record)
    made = len(record["entries"])
    assert "no charge after these" in hs.verify(known, ledger=ledger).explain()
    cut = record | {
        "entries": record["entries"][:1],
        "answers": {number: text for number, text in record["answers"].items() if number == "1"},
    }
    told = hs.verify(hs.Statement(record=json.dumps(cut)), ledger=ledger).explain()
    many = "a charge" if made == 2 else f"{made - 1} charges"
    assert f"the ledger has {many} after these, which the certificate does not show" in told
    assert "not checked: that no charge was taken off the end" not in told
    alone = hs.verify(hs.Statement(record=json.dumps(cut))).explain()
    assert "not checked: that no charge was taken off the end" in alone


def test_an_answer_beside_the_charge_of_another_is_not_shown_for_it(ledger):
    """Without the ledger, too: its promise is not the one that was charged."""
    record = json.loads(hs.certify_budget(ledger, "clinic").record)
    one, two = record["answers"]["1"], record["answers"]["2"]
    known = hs.Statement(record=json.dumps(record | {"answers": {"1": two, "2": one}}))
    assert known.explain().count("an answer of another promise than was charged") == 2
    assert "the answers are those that were paid for" in hs.verify(known).explain()


def test_no_remark_passes_for_a_sentence_of_the_certificate(ledger):
    """Remarks on the numbers are anybody's: one line each, and nothing that turns the writing."""
    record = json.loads(hs.certify(1, ledger=ledger, budget="clinic").record)
    remark = "odd\n\nWhat is promised: Epsilon = 0.001\u202e\u2028\ud800\x1b[2J"
    known = hs.Statement(record=json.dumps(record | {"warnings": [remark]}))
    text = known.explain()
    assert text.count("\n\nWhat is promised: ") == 1
    assert not {"\u202e", "\u2028", "\ud800", "\x1b"} & {*text}
    pytest.importorskip("altair")
    from hushed.plots import certificate_page

    page = certificate_page(known)
    assert not {"\u202e", "\u2028", "\x1b"} & {*page}
    assert page.encode()
    with pytest.raises(ParameterError):
        hs.Statement(record=json.dumps(record | {"warnings": [1]}))


@pytest.mark.parametrize("calibration", ["training-conditional", "marginal", "dkw"])
def test_the_line_for_outsiders_says_over_what_gamma_is_a_probability(calibration):
    """A row that is unlike the population may be told with certainty; no share covers it.

    Under each calibration a part of gamma is the chance that the sample was an unlucky one.
    """
    box, asked = hs.populations.Uniform(low=0, high=1), {"gamma": 0.05, "workers": 1}
    moved = hs.sample_sensitivity(
        lambda rows: rows.mean(), box, rows=50, calibration=calibration, **asked
    )
    released = hs.release(lambda rows: rows.mean(), VOTERS, hs.Laplace(moved, epsilon=1))
    line = hs.certify(released).explain().rpartition("\n\n")[2]
    assert "may fail with probability 0.05" in line
    assert "that of the sampler, and of rows that are drawn from the public population" in line
    assert "of a row that is unlike those nothing is promised" in line


def test_a_study_of_nominal_numbers_promises_nothing(tmp_path):
    """Neither in the sentence of its promise, nor in the line for outsiders."""
    limit = hs.Guarantee(epsilon=3, gamma=0.5, data_dependent=True)
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as book:
        book.open_budget("one", limit)
        text = hs.certify_study([hs.certify_budget(book, "one")]).explain()
    assert "in name only" in text
    assert "no probability changes" not in text
    assert "guesses right" not in text


def rewritten(record):
    """Write the chain of a report anew, as whoever forges one would."""
    record = copy.deepcopy(record)
    last = ""
    for each in (record["budget"], *record["entries"]):
        each.pop("digest", None)
        text = json.dumps(each, sort_keys=True, separators=(",", ":"))
        last = hashlib.sha256(f"{last}\n{text}".encode()).hexdigest()
        if each is record["budget"]:
            record["digest"] = last
        else:
            each["digest"] = last
    return json.dumps(record)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("budget", "limit", "epsilon"), (1.0).hex()),
        (("entries", 0, "costs", 0, 0), (0.1).hex()),
        (("entries", 0, "guarantee", "unit"), "row"),
        (("entries", 0, "guarantee", "neighbours"), "replace-one"),
        (("entries", 0, "guarantee", "data_dependent"), True),
    ],
)
def test_no_report_promises_less_than_its_charges_or_another_unit(ledger, path, value):
    """Also if the chain was written anew: its limit would not follow from the rest."""
    record = json.loads(hs.certify_budget(ledger, "clinic").record)
    assert hs.Statement(record=rewritten(record)).guarantee == USERS
    with pytest.raises(ParameterError, match=r"limit|added up as less|does not take this charge"):
        hs.Statement(record=rewritten(put(record, path, value)))


@pytest.fixture(scope="module", params=["adaptive", "zcdp", "renyi", "gaussian", "pld"])
def noisy_report(request, tmp_path_factory):
    """Give the record of a budget under each rule, with charges of Gaussian noise."""
    moved = hs.proven_sensitivity(1.0, "l2", argument="a mean of values in [0, 1]")
    noise = hs.Gaussian(moved, epsilon=0.5, delta=1e-7)
    with hs.Ledger(f"sqlite:///{tmp_path_factory.mktemp('noisy')}/l.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=4, delta=1e-5), method=request.param)
        for _ in range(2):
            hs.release(lambda rows: rows.mean(), VOTERS, noise, ledger=book, budget="b")
        yield json.loads(hs.certify_budget(book, "b").record)


@pytest.mark.slow_cases("adaptive", "gaussian", "pld", "renyi")
def test_no_report_adds_up_less_than_is_promised_under_any_rule(noisy_report):
    """Neither by the costs of a charge, nor by a rule that lets more through, nor beyond it."""
    known = hs.Statement(record=rewritten(noisy_report))
    assert "said that less is lost" not in known.explain()
    last = len(noisy_report["budget"]["filters"]) - 1
    tiny, filters = (1e-9).hex(), ("budget", "filters", last)
    forged = [
        (("entries", 0, "costs", last, 0), tiny),
        (("budget", "limit", "epsilon"), (1.0).hex()),
        (("budget", "limit", "delta"), (1e-8).hex()),
        ((*filters, "capacity"), (1e3).hex()),
        ((*filters, "slack"), (1e-3).hex()),
        ((*filters, "name"), "basic"),
        (("entries",), [{**noisy_report["entries"][0], "number": i + 1} for i in range(200)]),
    ]
    for path, value in forged:
        with pytest.raises(ParameterError, match=r"limit|added up as less"):
            hs.Statement(record=rewritten(put(noisy_report, path, value)))


@pytest.mark.slow_cases("pld", "renyi", "gaussian")
def test_a_report_names_charges_of_which_less_is_counted_than_they_promise(noisy_report):
    """A tiny law beside a large promise may be right, and nobody can check it: it is said."""
    law = [{"law": "gaussian", "ratio": (1e-4).hex(), "releases": 1, "count": 1}]
    record = copy.deepcopy(noisy_report)
    for each in record["entries"]:
        promise = [each["guarantee"]["epsilon"], each["guarantee"]["delta"]]
        rules = [rule["name"] for rule in record["budget"]["filters"]]
        each["law"] = law
        each["costs"] = [promise if rule == "basic" else [(1e-6).hex()] * 2 for rule in rules]
    text = hs.Statement(record=rewritten(record)).explain()
    assert "the smaller loss was counted: entry 1, 2." in text
    assert text.count("an answer of another promise than was charged") == 2


CHOICES = {
    "exponential": (lambda moved: hs.Exponential(moved, epsilon=1), [-1, 5, True, 2.0, None]),
    "noisy-max": (lambda moved: hs.NoisyMax(moved, epsilon=1), [{"index": 5, "gap": 1.0}]),
    "top-k": (
        lambda moved: hs.TopK(2, moved, epsilon=1),
        [{"numbers": each, "shape": [len(each)]} for each in ([1, 5], [1, 1], [1], [0, 1, 2])],
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_what_was_chosen_is_one_of_the_candidates(name):
    """A number that no candidate has was not released by the mechanism."""
    make, forged = CHOICES[name]
    moved = hs.proven_sensitivity(1.0, "sup", argument="each row votes once")
    known = hs.certify(hs.release(lambda rows: np.arange(5.0), VOTERS, make(moved)))
    assert hs.Statement.from_json(known.to_json()) == known
    for value in forged:
        with pytest.raises(ParameterError):
            hs.Statement(record=json.dumps(json.loads(known.record) | {"value": value}))


def test_no_name_of_a_function_passes_for_a_sentence_of_the_certificate():
    """Whoever writes a certificate of blocks names the function, and may say anything there."""
    asked = hs.release(np.mean, VOTERS, hs.Blocks(low=0, high=1, epsilon=40.0, blocks=2))
    assert "Released was 'mean', asked about 2 blocks" in asked.certificate.explain()
    known = json.loads(hs.certify(asked).record)
    known["certificate"]["mechanism"]["parameters"]["function"] = "exact. Nobody's row is in it"
    told = hs.Statement(record=json.dumps(known)).explain()
    assert """Released was "exact. Nobody's row is in it", asked about""" in told


def test_no_text_is_certified_as_the_answer_of_a_noisy_mean():
    """Noise is added to numbers: a text beside its certificate was never protected by it."""
    moved = hs.proven_sensitivity(1.0, "l1", argument="a mean of values in [0, 1]")
    noise = hs.Laplace(moved, epsilon=1)
    one = hs.certify(hs.release(lambda rows: rows.mean(), VOTERS, noise))
    two = hs.certify(hs.release(lambda rows: rows[:2], VOTERS, noise))
    forged = [("str", "Ada is ill"), ("int", 7), ("bool", True), ("refusal", None)]
    for known, values in ((one, forged), (two, [*forged, ("float", 0.5)])):
        record = json.loads(known.record)
        for kind, value in values:
            with pytest.raises(ParameterError):
                hs.Statement(record=json.dumps(record | {"kind": kind, "value": value}))


def test_the_line_for_outsiders_names_what_was_only_stated():
    """A sensitivity that somebody wrote down is no proof; one of hushed's own needs no word."""
    moved = hs.proven_sensitivity(1.0, "l1", argument="a mean of values in [0, 1]")
    released = hs.release(lambda rows: rows.mean(), VOTERS, hs.Laplace(moved, epsilon=1))
    line = hs.certify(released).explain().rpartition("\n\n")[2]
    assert "rests on the reason that was given for the sensitivity" in line
    counted = hs.certify(hs.table(ROWS).count().release(epsilon=1))
    assert "rests on" not in counted.explain()


def test_a_study_and_a_report_rest_on_what_their_parts_rest_on(tmp_path):
    """A stated sensitivity, or the word of an author, does not become a proof by being added up."""
    moved = hs.proven_sensitivity(1.0, "l1", argument="a mean of values in [0, 1]")
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=3))
        noise = hs.Laplace(moved, epsilon=1)
        released = hs.release(lambda rows: rows.mean(), VOTERS, noise, book, budget="b")
        known = [hs.certify_study([hs.certify(released)]), hs.certify_budget(book, "b")]
    for each in known:
        text = each.explain()
        assert "assumes is assumed here, too" in text
        assert "if it does not hold, there is no limit" in text.rpartition("\n\n")[2]
