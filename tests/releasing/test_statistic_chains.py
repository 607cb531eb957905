"""Statistics of what a chain makes of the rows: one gate, one charge, one certificate."""

import json

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed import measurements as m
from hushed import noise
from hushed import transformations as t
from hushed.errors import BadFunction, BadRows, KeyInUse, ParameterError, SpaceMismatch
from hushed.spaces import CHANGE_ONE, SYMMETRIC, USERS, Cell, Column, Space, Table
from hushed.statements._releases import tell_outsider

TABLE = Table.of({"age": Cell(missing=True), "ward": Cell(type="string")})
VISITS = Space(domain=TABLE, metric=SYMMETRIC)
AGES = VISITS >> t.select("age") >> t.impute(40.0) >> t.clip(0, 100)
WARDS = VISITS >> t.select("ward")
ROWS = pd.DataFrame({"age": [31.0, None, 64.0, 250.0], "ward": ["a", "b", "a", "c"]})
MEDIAN = hs.statistics.median(low=0, high=100)
MODE = hs.statistics.mode(["a", "b"])
MADE = {
    "inverse": (AGES, hs.InverseSensitivity(MEDIAN, epsilon=0.5, candidates=[0, 30, 64, 100])),
    "smooth": (AGES, hs.Smooth(MEDIAN, epsilon=0.5)),
    "propose-test": (AGES, hs.ProposeTest(MEDIAN, bound=5, epsilon=0.5, delta=1e-6)),
    "stable mode": (WARDS, hs.StableMode(MODE, epsilon=0.5, delta=1e-6)),
    "mode": (WARDS, hs.InverseSensitivity(MODE, epsilon=0.5)),
}


@pytest.fixture
def ledger(tmp_path):
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as opened:
        promise = hs.Guarantee(epsilon=1.0, delta=1e-5, neighbours="add-remove")
        opened.open_budget("stays", promise)
        yield opened


@pytest.mark.parametrize("name", MADE)
def test_one_charge_one_certificate(name, ledger):
    """Charged and promised is what the mechanism loses; under its key it is told again, free."""
    chain, mechanism = MADE[name]
    asked = {"ledger": ledger, "budget": "stays", "key": "one"}
    released = hs.release(chain, ROWS, mechanism, **asked)
    known = released.certificate
    assert known.guarantee == mechanism.guarantee
    assert ledger.balance("stays").spent.epsilon == 0.5
    assert known.chain.startswith(chain.name)
    assert str(VISITS) in known.chain
    assert hs.Certificate.from_json(known.to_json()) == known
    followed = hs.verify(known)
    assert followed.reproduced
    assert "the steps before it" in str(followed)
    assert "as far as each step before it does what it says" in known.explain()
    assert chain.name in known.explain()
    assert "rests on what the steps before the statistic say" in tell_outsider(known)
    again = hs.release(chain, ROWS, mechanism, **asked)
    assert (again.value, again.certificate) == (released.value, known)
    assert ledger.balance("stays").spent.epsilon == 0.5
    with pytest.raises(KeyInUse):  # other steps are another question
        hs.release(chain >> next_step(chain), ROWS, mechanism, **asked)
    assert ledger.balance("stays").spent.epsilon == 0.5


def next_step(chain):
    texts = chain is WARDS
    return t.map_rows(str, Cell(type="string")) if texts else t.clip(0, 90)


def test_it_is_drawn_from_what_the_steps_give(monkeypatch):
    """The same scores as of the rows that the steps make, written down by hand."""
    calls = []

    def select(scores, *, width, epsilon):
        calls.append((np.asarray(scores).tolist(), width, epsilon))
        return 0

    monkeypatch.setattr(noise, "select", select)
    chain, mechanism = MADE["inverse"]
    hs.release(chain, ROWS, mechanism)
    hs.release(MEDIAN, [31.0, 40.0, 64.0, 100.0], mechanism)
    (chain >> m.inverse_sensitivity(MEDIAN, epsilon=0.5, candidates=[0, 30, 64, 100]))(ROWS)
    assert calls[0] == calls[1] == calls[2]


KEYED = Table.of({"age": Cell(low=0, high=100), "who": Cell(type="string")}, key="who")
SIZED = Space(domain=Column(cell=Cell(low=0, high=100), size=4), metric=CHANGE_ONE)
PLAIN = Space(domain=Column(cell=Cell(low=0, high=100)), metric=SYMMETRIC)
FOUR = hs.statistics.median(rows=4, low=0, high=100)
REFUSED = {
    "users": (
        Space(domain=KEYED, metric=USERS) >> t.limit_rows(3) >> t.select("age"),
        MEDIAN,
        "for one row of it",
    ),
    "replaced rows": (SIZED >> t.to_symmetric(), MEDIAN, "for add-remove neighbours"),
    "a public number": (PLAIN >> t.resize(4, fill=0.0), FOUR, "for replace-one neighbours"),
    "a least number": (
        Space(domain=Column(cell=Cell(low=0, high=100), least=3), metric=SYMMETRIC) >> t.clip(0, 9),
        MEDIAN,
        "for every table",
    ),
    "two rows of one": (
        t.declared(
            lambda rows: np.repeat(rows, 2),
            source=PLAIN,
            target=PLAIN,
            stability=2,
            argument="each row is there twice",
        ),
        MEDIAN,
        "changes up to 2 rows",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_steps_that_make_more_than_one_row_of_one_are_refused(name, ledger):
    """Before the charge, with the step that counts them; and that step is taken."""
    chain, statistic, text = REFUSED[name]
    mechanism = hs.InverseSensitivity(statistic, epsilon=0.5)
    with pytest.raises(ParameterError, match=text) as refused:
        hs.release(chain, [1.0] * 4, mechanism, ledger=ledger, budget="stays")
    assert "end the chain with measurements.inverse_sensitivity(...)" in str(refused.value)
    assert ledger.balance("stays").spent.epsilon == 0
    assert (chain >> m.inverse_sensitivity(statistic, epsilon=0.5)).map(2) >= 0.5


def test_replaced_rows_of_a_public_number_are_one():
    """Two tables at a distance of two added and removed rows are neighbours, as the statistic's."""
    column = Space(domain=SIZED.domain, metric=SYMMETRIC) >> t.to_change_one()
    for chain in (column, SIZED >> t.clip(0, 50)):
        released = hs.release(chain, [1.0, 2.0, 3.0, 9.0], hs.Smooth(FOUR, epsilon=1.0))
        assert released.certificate.neighbours == "replace-one"
        assert 0 <= released.value <= 100
        with pytest.raises(BadRows, match="not the public one"):
            hs.release(chain, [1.0, 2.0], hs.Smooth(FOUR, epsilon=1.0))


def test_what_does_not_fit_is_refused_with_what_would(ledger):
    """A chain to another column, or another statistic; nothing is charged."""
    asked = {"ledger": ledger, "budget": "stays"}
    with pytest.raises(SpaceMismatch, match=r"put cast\('float'\)"):
        hs.release(WARDS, ROWS, hs.Smooth(MEDIAN, epsilon=0.5), **asked)
    with pytest.raises(SpaceMismatch, match="takes a column"):
        hs.release(AGES >> t.count(), ROWS, hs.Smooth(MEDIAN, epsilon=0.5), **asked)
    with pytest.raises(ParameterError, match="a chain of transformations to the column"):
        hs.release(MODE, ROWS, hs.Smooth(MEDIAN, epsilon=0.5), **asked)
    with pytest.raises(ParameterError, match="outside"):
        hs.release(AGES, ROWS, hs.Smooth(MEDIAN, epsilon=0.5), outside="allow", **asked)
    assert ledger.balance("stays").spent.epsilon == 0


@pytest.mark.parametrize(
    ("chain", "mechanism"),
    [
        (AGES >> t.sum_of() >> m.laplace(50.0), "laplace"),
        (AGES >> m.smooth(MEDIAN, epsilon=0.5), "smooth"),
    ],
)
def test_a_chain_that_ends_in_noise_is_no_function_to_release(chain, mechanism, ledger):
    """Its answers move without bound, whatever sensitivity goes with it; nothing is charged."""
    moved = m.chain_sensitivity(AGES >> t.sum_of())
    made = hs.Laplace(moved, epsilon=0.5) if mechanism == "laplace" else MADE["smooth"][1]
    with pytest.raises(ParameterError, match="ends in noise already"):
        hs.release(chain, ROWS, made, ledger=ledger, budget="stays")
    assert ledger.balance("stays").spent.epsilon == 0


def test_rows_that_the_steps_refuse_stay_paid_and_hidden(ledger):
    """A cell that no step allows for is found after the charge; its value is not told."""
    strict = Space(domain=Table.of({"age": Cell(low=0, high=100)}), metric=SYMMETRIC)
    chain = strict >> t.select("age")
    with pytest.raises(BadFunction, match="the charge stays") as refused:
        hs.release(
            chain,
            pd.DataFrame({"age": [1.0, 277.125]}),
            hs.Smooth(MEDIAN, epsilon=0.5),
            ledger=ledger,
            budget="stays",
        )
    assert "277" not in str(refused.value)
    assert ledger.balance("stays").spent.epsilon == 0.5


def test_a_function_in_the_chain_must_not_hold_the_rows():
    """A step that carries the private rows is refused before anything is drawn."""
    held = ROWS.copy()
    chain = VISITS >> t.select("ward") >> t.map_rows(lambda x: x, Cell(type="string"))
    assert hs.release(chain, held, hs.InverseSensitivity(MODE, epsilon=0.5)).value in ("a", "b")
    carrying = (
        VISITS >> t.select("ward") >> t.map_rows(lambda x, all_of=held: x, Cell(type="string"))
    )
    with pytest.raises(BadFunction, match="carries the private rows"):
        hs.release(carrying, held, hs.InverseSensitivity(MODE, epsilon=0.5))


def test_a_chain_on_other_certificates_is_refused():
    """Steps of any other function stand in the argument; a forged one is told apart."""
    total = AGES >> t.sum_of()
    known = hs.release(total, ROWS, hs.Laplace(m.chain_sensitivity(total), epsilon=0.5)).certificate
    forged = json.loads(known.to_json()) | {"chain": "clip([0, 1]), on a column"}
    with pytest.raises(ParameterError, match="chain is for a statistic"):
        hs.Certificate.from_json(json.dumps(forged))
    plain = hs.release(MEDIAN, [1.0, 2.0], hs.Smooth(MEDIAN, epsilon=0.5)).certificate
    assert plain.chain == ""
    assert "this holds for every table and every row; no population" in plain.explain()


@pytest.mark.parametrize("kind", ["top-k", "noisy max"])
def test_choices_by_chains_are_released_with_their_sensitivity(kind, ledger):
    """Top k and the noisy max take the chain's own sensitivity; charged, certified, verified."""
    counts = WARDS >> t.histogram(["a", "b", "c"], norm="one-sided")
    moved = m.chain_sensitivity(counts)
    made = hs.TopK(2, moved, epsilon=0.5) if kind == "top-k" else hs.NoisyMax(moved, epsilon=0.5)
    rows = pd.DataFrame({"age": [1.0] * 900, "ward": ["b"] * 600 + ["a"] * 300})
    released = hs.release(counts, rows, made, ledger=ledger, budget="stays")
    found = released.value.tolist() if kind == "top-k" else released.value.index
    assert found == ([1, 0] if kind == "top-k" else 1)
    assert ledger.balance("stays").spent.epsilon == 0.5
    assert counts.name in released.certificate.argument
    assert hs.verify(released.certificate).reproduced
