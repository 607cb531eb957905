"""The text of every law that a ledger writes is the form that PostgreSQL asks of it."""

import json
import re

import pytest

from hushed import privacy_loss
from hushed.errors import DamagedLedger
from hushed.ledger._laws import LAWS, read_law, write_law
from hushed.ledger._postgres import LAW

EXAMPLES = {
    "laplace": privacy_loss.laplace(0.1),
    "bounded-range": privacy_loss.bounded_range(1e-3),
    "gaussian": privacy_loss.gaussian(0.05),
    "finite": privacy_loss.randomised_response(1.0, 3),
}
PLAIN = '{"bound":"0x1.0000000000000p-1","count":1,"law":"laplace"}'


def text_of(part):
    """A law as an entry holds it."""
    return json.dumps(part, sort_keys=True, separators=(",", ":"))


def is_taken(text):
    """Whether the whole text has the form."""
    return re.fullmatch(LAW, text) is not None


def test_there_is_an_example_of_every_law():
    """A law that is entered needs one here."""
    assert set(EXAMPLES) == set(LAWS)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("count", [1, 300])
def test_the_written_form_of_each_law_is_taken(name, count):
    """Each part of a composition has the form, under its name, and comes back as it was."""
    (part,) = write_law(EXAMPLES[name].compose(count))
    assert part["law"] == name
    assert is_taken(text_of(part))
    assert read_law([part]).delta(1.0) == EXAMPLES[name].compose(count).delta(1.0)


@pytest.mark.parametrize("law", [privacy_loss.discrete_laplace(3.0, 2), privacy_loss.laplace(1e-9)])
def test_extreme_laws_are_taken(law):
    """Many atoms and small numbers have the form as well."""
    assert all(is_taken(text_of(part)) for part in write_law(law))


@pytest.mark.parametrize(
    "garbage",
    [
        PLAIN.replace("laplace", "cauchy"),
        PLAIN.replace("bound", "ratio"),
        PLAIN.replace('"count":1,', ""),
        PLAIN.replace('"count":1', '"count":0'),
        PLAIN.replace('"count":1', '"count":1.5'),
        PLAIN.replace('"0x1.0000000000000p-1"', "0.5"),
        PLAIN.replace("0x1", "-0x1"),
        PLAIN.replace('"0x1.0000000000000p-1"', '"nan"'),
        PLAIN.replace("p-1", "p-9999"),
        PLAIN.replace('"law"', '"more":1,"law"'),
        PLAIN.replace(",", ", "),
        PLAIN + PLAIN,
        text_of({"law": "laplace", "ratio": "0x1.0p+0", "releases": 1, "count": 1}),
        text_of(write_law(EXAMPLES["finite"])[0]).replace("[", "[null,", 1),
        "{}",
        "",
    ],
)
def test_other_texts_are_not_taken(garbage):
    """A name, number, order or part that no law writes ends the match."""
    assert is_taken(PLAIN)
    assert not is_taken(garbage)


@pytest.mark.parametrize("name", ["laplace", "bounded-range", "gaussian"])
@pytest.mark.parametrize("amount", ["-0x1.0000000000000p+0", "0x0.0p+0", "nan", "-inf"])
def test_an_amount_that_no_law_has_is_not_read(name, amount):
    """Not above 0, it would be subtracted from the charges of others, or divide by 0."""
    (part,) = write_law(EXAMPLES[name])
    assert read_law([part]).delta(0.0) > 0
    (field,) = (each for each, form in LAWS[name].fields.items() if form == "amount")
    with pytest.raises(DamagedLedger):
        read_law([part | {field: amount}])


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "1", None])
@pytest.mark.parametrize("field", ["count", "releases"])
def test_a_law_occurs_once_or_oftener(field, count):
    """A count is a whole number of JSON, and so is that of releases."""
    (part,) = write_law(EXAMPLES["gaussian"])
    with pytest.raises(DamagedLedger):
        read_law([part | {field: count}])


def test_no_laws_are_no_law():
    """An entry without any says nothing of its loss."""
    with pytest.raises(DamagedLedger):
        read_law([])
