"""Sentences of certificates that would be false for some configurations, and are not printed."""

from importlib import resources
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed import transformations as t
from hushed._web.sentences import say_meaning
from hushed.errors import ParameterError
from hushed.measurements import chain_sensitivity
from hushed.plots import budget_figure
from hushed.spaces import SYMMETRIC, Cell, Column, Space

UNIT = hs.populations.Uniform(low=0.0, high=1.0)


def certificate(sensitivity, mechanism=hs.Laplace, **parameters):
    """Release a constant with noise, for its certificate."""
    noisy = mechanism(sensitivity, epsilon=1.0, **parameters)
    return hs.release(lambda rows: 0.0, np.zeros(200), noisy).certificate


def test_a_promise_about_tables_of_many_rows_is_not_said_to_be_about_all():
    """Of a chain of 100 rows at least, nobody is told that every pair of tables is covered."""
    column = Column(cell=Cell(low=0, high=1), least=100)
    chain = Space(domain=column, metric=SYMMETRIC) >> t.mean()
    noisy = hs.Laplace(chain_sensitivity(chain), epsilon=1.0)
    words = hs.release(chain, np.zeros(200), noisy).certificate.explain()
    assert "both have at least 100 rows alone" in words
    assert "every such pair of tables of which the reason given below holds" in words
    assert "every such pair of tables." not in words
    assert "whatever the rows" not in words


def test_a_given_row_is_one_that_a_private_row_can_be():
    """A row outside of the range is moved to its end, which then has to be among the given ones."""

    def end(rows):
        return float((np.asarray(rows) == 1.0).sum())

    sample = {"rows": 20, "gamma": 0.3, "protect": "table"}
    with pytest.raises(ParameterError, match="outside of the range"):
        hs.sample_sensitivity(end, UNIT, values=[5.0, 0.5], **sample)
    assert hs.sample_sensitivity(end, UNIT, values=[1.0, 0.5], **sample).value == 1.0


def test_delta_grows_faster_than_the_rows_of_somebody():
    """Two rows cost delta (1 + e^epsilon): it is not said that epsilon alone is paid again."""
    proven = hs.proven_sensitivity(1.0, "l2", argument="a count of at most one a row")
    assert "costs epsilon again, and more than delta" in (
        certificate(proven, hs.Gaussian, delta=1e-6).explain()
    )


def test_a_check_of_movements_names_what_it_rests_on():
    """A function that remembers one pair for the next may move many: the words leave that open."""
    s = hs.sample_sensitivity(np.mean, UNIT, rows=4, gamma=0.3, workers=1)
    found = hs.check_movement(np.mean, np.linspace(0, 1, 100), s, epsilon=1.0)
    assert "if the function keeps nothing of one pair for another" in found.certificate.explain()


def test_a_sum_of_releases_says_that_it_needs_a_plan():
    """No theorem covers levels that were chosen by answers, but those of a budget's filters."""
    moved = hs.proven_sensitivity(1.0, "l1", argument="a mean of values in [0, 1]")
    noise = [hs.Laplace(moved, epsilon=level) for level in (1.0, 0.5)]
    parts = [
        hs.certify(hs.release(lambda rows: rows.mean(), np.full(50, 0.5), each)) for each in noise
    ]
    words = "how much each may lose, was fixed before the first answer"
    assert words in hs.compose(noise).explain()
    assert words in hs.certify_study(parts).explain()
    assert "no answer decided" in hs.verify(hs.certify_study(parts)).explain()
    assert words not in hs.compose(noise[:1]).explain()
    assert words not in hs.certify_study(parts[:1]).explain()


def test_several_answers_are_about_one_person_only_if_it_is_the_same(tmp_path):
    """Patients in one answer and doctors in the other: no sum is said to protect either in both."""
    rows = pa.table({"patient": ["a", "b"], "doctor": ["c", "c"]})
    ledger = hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}")
    limit = hs.Guarantee(epsilon=9.0, neighbours="add-remove", unit="user")
    ledger.open_budget("rows", limit)
    words = "A person has to be the same one in all of them"
    for user, told in (
        ("patient", f"{words}, by whatever column each release knows people."),
        (
            "doctor",
            f"{words}, by whatever column each release knows people (here doctor, patient).",
        ),
    ):
        query = hs.table(rows, user=user).count_users()
        last = hs.certify(query.release(epsilon=1.0, ledger=ledger, budget="rows"))
        assert told in hs.certify_budget(ledger, "rows").explain()
    first = hs.certify(1, ledger=ledger, budget="rows")
    assert words in hs.certify_study([first, last]).explain()
    assert words not in hs.certify_study([first]).explain()
    counted = [hs.certify(hs.table(rows).count().release(epsilon=1.0), note=n) for n in "ab"]
    assert words not in hs.certify_study(counted).explain()


def test_the_limit_of_a_budget_for_a_plan_rests_on_the_plan(tmp_path):
    """What an outsider guesses is bounded for no analyst who steers, where the rule is not."""
    ledger = hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}")
    for method, told in (("pld", True), ("basic", False)):
        ledger.open_budget(method, hs.Guarantee(epsilon=1.0, delta=1e-6), method=method)
        words = hs.certify_budget(ledger, method).explain().partition("an outsider could still")[2]
        assert ("and on a plan that no answer changed: if it does not hold" in words) is told


def test_an_answer_rests_on_rows_that_nobody_else_made():
    """A view, or a text of several lines in a file, may mix people: it holds for no such table."""
    answer = hs.table(pa.table({"x": [1.0]})).count().release(epsilon=1.0)
    assert "no row of it was made from rows of somebody else" in hs.certify(answer).explain()


class Narrow(hs.populations.Uniform):
    """Draws in its own way, and describes itself as its parent does."""

    def draw(self, rng, count):
        return super().draw(rng, count) / 100


class Named:
    """Has the name of a law that it does not draw."""

    def draw(self, rng, count):
        return rng.random(count) / 100

    def describe(self):
        return {"kind": "uniform", "low": 0, "high": 1}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Narrow(low=0, high=1),
        Named,
        lambda: hs.populations.Users(Narrow(low=0, high=1), sizes=1),
        lambda: hs.populations.Contaminated(hs.populations.Uniform(0, 1), Named(), share=0.5),
    ],
)
def test_no_population_of_ones_own_has_the_name_of_ours(make):
    """A certificate would say that rows were drawn from a law from which they were not."""

    def ask():
        law = make()
        user = 0 if isinstance(law, hs.populations.Users) else None
        hs.sample_sensitivity(np.mean, law, rows=20, gamma=0.3, user=user, workers=1)

    with pytest.raises(ParameterError, match="Give it a kind of its own"):
        ask()


def test_a_promise_for_several_rows_is_nowhere_one_for_a_single_row(tmp_path):
    """In the line, the card and the certificate of whatever carries it; it covers no single row."""
    drawn = hs.sample_sensitivity(np.mean, UNIT, rows=20, gamma=0.5, symmetric=True, distance=2)
    mechanism = hs.Laplace(drawn, epsilon=1.0)
    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
        ledger.open_budget("two", hs.Guarantee(epsilon=2, gamma=0.9, distance=2))
        rows = np.random.default_rng(0).random(20)
        released = hs.release(np.mean, rows, mechanism, ledger=ledger, budget="two")
        told = [
            *map(repr, (drawn, released, released.certificate, ledger.entries("two")[0])),
            *(each._repr_html_() for each in (drawn, mechanism, released, ledger)),
            hs.certify(released).explain(),
            hs.certify_study([hs.certify(released)]).explain(),
            hs.certify_budget(ledger, "two").explain(),
        ]
    for text in told:
        assert "2 rows at once" in text
        assert "one row" not in text
    assert "2 at once" in hs.compose([mechanism], delta=0).explain()


@pytest.fixture(scope="module")
def nominal():
    """Sample from a population that was made from the private rows, as is admitted."""
    asked = {"rows": 20, "gamma": 0.3, "workers": 1, "symmetric": True}
    return hs.sample_sensitivity(np.mean, UNIT, data_dependent=True, **asked)


def shown(thing):
    """Text and lines of the card of a notebook."""
    card = thing._card()
    return "\n".join([card.text, *(f"{name}: {value}" for name, value in card.facts)])


def test_nominal_numbers_are_called_so_wherever_they_are_shown(nominal):
    """Certificate and budget said so; sensitivities, mechanisms, chains and sums did not."""
    noisy = hs.Laplace(nominal, epsilon=1.0)
    chain = t.from_sensitivity(np.mean, nominal)
    told = [
        nominal.explain(),
        shown(noisy),
        shown(chain),
        shown(chain >> hs.measurements.laplace(1.0)),
        hs.compose([noisy, noisy]).explain(),
        hs.parallel([noisy], membership="public").explain(),
        hs.release(np.mean, np.full(20, 0.5), noisy).certificate.explain(),
    ]
    assert all("NOT A PRIVACY GUARANTEE" in words for words in told)
    released = hs.release(np.mean, np.full(20, 0.5), noisy)
    for brief in (hs.compose([noisy])._brief(), released.certificate._brief()):
        assert "not a privacy guarantee" in brief


def test_a_nominal_charge_and_its_budget_are_called_so(nominal, tmp_path):
    """The card of an entry and the figure of a budget showed their numbers as promises."""
    ledger = hs.Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open_budget("rows", hs.Guarantee(epsilon=2.0, gamma=0.5, data_dependent=True))
    entry = ledger.charge("rows", hs.Laplace(nominal, epsilon=1.0).guarantee)
    assert "NOT A PRIVACY GUARANTEE" in shown(entry)
    figure = budget_figure(ledger, "rows")
    assert "not a privacy guarantee" in figure.to_json()


def test_no_risk_is_told_from_movements_of_the_private_rows(nominal):
    """Means of movements that were drawn from a population made from them tell of them."""
    with pytest.raises(ParameterError, match="made from the private rows"):
        hs.risk.over_data(hs.Laplace(nominal, epsilon=1.0), 0.5)


def test_no_sampled_bound_is_shown_without_its_gamma():
    """The card of a chain said by how much it moves and loses "at most", for any two tables."""
    s = hs.sample_sensitivity(np.mean, UNIT, rows=20, gamma=0.3, workers=1, symmetric=True)
    chain = t.from_sensitivity(np.mean, s)
    noisy = chain >> hs.measurements.laplace(s.value)
    both = hs.measurements.compose([noisy, noisy])
    for each in (chain, noisy, both):
        assert "but for a gamma of 0.3" in shown(each)
    assert "gamma 0.3" in hs.compose([hs.Laplace(s, epsilon=1.0)])._brief()
    proven = hs.proven_sensitivity(1.0, "l1", argument="counts")
    assert "gamma" not in shown(t.from_sensitivity(len, proven) >> hs.measurements.laplace(1.0))


def test_a_search_rests_on_the_word_of_who_asks_whatever_bound_it_is_given():
    """By a global sensitivity it "held for every table": though any answers may be asked."""
    mean = hs.statistics.mean(rows=30, low=0, high=1)
    chain = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC) >> t.sum_of()
    for bound in (hs.global_sensitivity(mean), chain_sensitivity(chain)):
        search = hs.AboveThreshold(1, epsilon=1.0, sensitivity=bound, monotone=True)
        words = search.certificate.explain()
        assert "who asked stated that this bounds every answer" in words
        assert "all answers move the same way" in words
        assert "of which the reason given below holds" in words
        assert "Released was the mean" not in words
        found = hs.verify(search.certificate)
        assert found.reproduced
        assert "the sensitivity and its argument" in found.unchecked


def test_no_likelihood_is_bounded_by_a_statistic():
    """Its certificate would give the reason of the statistic, or the chain, for the posterior."""
    mode = hs.global_sensitivity(hs.statistics.mode(["a", "b"], rows=9), "range")
    with pytest.raises(ParameterError, match="bounds no log likelihood"):
        hs.Posterior(lambda row, p: p, [0.25, 0.75], epsilon=1.0, sensitivity=mode)


def test_no_gamma_is_said_to_hold_for_a_function_that_an_answer_led_to(tmp_path):
    """Counts tell so much of a table that a function can be made which moves far on it alone."""
    private, rows = np.random.default_rng(1).random(2000), {"rows": 2000, "gamma": 0.3}

    def count(rows):
        return np.histogram(rows, bins=16, range=(0, 1))[0]

    options = {"symmetric": True, "workers": 1, **rows}
    counted = hs.sample_sensitivity(count, UNIT, norm="l1", **options)
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=2, gamma=0.6))
        first = hs.release(count, private, hs.Laplace(counted, epsilon=1.0), ledger, budget="b")

        def steered(rows):
            near = abs(count(rows) - first.value).sum() < 80
            return rows.sum() if near else rows.mean()

        moves = hs.sample_sensitivity(steered, UNIT, **options)
        second = hs.release(steered, private, hs.Laplace(moves, epsilon=1.0), ledger, budget="b")
        balance = ledger.balance("b").explain()
    neighbour = np.append(private[1:], 0.0)
    assert abs(steered(neighbour) - steered(private)) > 100 * moves.value  # and gamma is 0.3
    exception = "Gamma does not hold for a function that was chosen, or sampled, because of an"
    assert exception in balance
    assert "hold for one that an answer led to" in second.certificate.explain()
    together = hs.compose([first.certificate.guarantee, second.certificate.guarantee])
    assert exception in together.explain()
    study = hs.certify_study([hs.certify(first), hs.certify(second)])
    assert exception in study.explain()


def test_a_bound_on_a_belief_names_who_believes_and_what():
    """An answer moves beliefs about people by what holds for all, and a value by two changes.

    Of two cells of a histogram that says l1 1 for one row more or less, the value of a row that is
    surely there is told apart by twice the epsilon.
    """
    need = {"error": 2.0, "beta": 0.05}
    sentences = {}
    for neighbours in ("add-remove", "replace-one"):
        proven = hs.proven_sensitivity(1.0, "l1", argument="a cell more", neighbours=neighbours)
        found = hs.cost.plan([hs.cost.Need(sensitivity=proven, **need)])
        sentences[neighbours] = found.sentence
        assert "someone who knows all other records" in found.sentence
    assert "the presence of that row as likely as not" in sentences["add-remove"]
    assert "a fact about" not in sentences["add-remove"]
    assert "a fact about that row as likely as not" in sentences["replace-one"]
    assert say_meaning(1.0, 0.0, "user").startswith("Someone who knows everything else")


def test_delta_is_not_said_to_be_how_often_an_answer_tells_more():
    """Of Gaussian noise one in 19 answers tells more at a delta of 0.01; guesses gain delta."""
    moved = hs.proven_sensitivity(1.0, "l2", argument="a count")
    noisy = hs.Gaussian(moved, epsilon=1.0, delta=0.01)
    shift, tail = 1 / noisy.scale, NormalDist().cdf
    assert tail(shift / 2 - 1 / shift) > 5 * 0.01  # the chance of a loss above epsilon
    guess = tail(shift / 2)  # the best one, of somebody who is 50 % sure
    assert 0.5 < guess <= hs.risk.belief(1.0) + 0.01
    page = resources.files("hushed.workbench") / "templates" / "part_question_page.html"
    for words in (say_meaning(1.0, 0.01, "user"), page.read_text(encoding="utf-8")):
        assert "a guess is right with at most that probability plus delta" in words
        assert "rare" not in words
    assert "delta" not in say_meaning(1.0, 0.0, "user")


def test_every_release_of_a_table_assumes_that_its_rows_were_made_each_from_itself():
    """Scaled by all rows, all rows of a table tell of one: a bound for one row is none for them."""
    rows = np.linspace(20, 40, 200)
    scaled = [(each - each.mean()) / each.std() for each in (rows, np.append(rows[1:], 1e9))]
    median = hs.statistics.median(rows=200, low=-1, high=1)
    apart = abs(median.value(scaled[0]) - median.value(scaled[1]))
    assert np.sum(scaled[0] != scaled[1]) == 200
    assert apart > 0.05  # with 200 rows of which each is its own, a row moves it by 0.01
    proven = hs.proven_sensitivity(1.0, argument="a count")
    released = [
        hs.release(median, scaled[0], hs.InverseSensitivity(median, epsilon=1.0)),
        hs.release(len, rows, hs.Laplace(proven, epsilon=1.0)),
        hs.find_bound(rows, epsilon=1.0),
        hs.release(np.mean, rows, hs.Blocks(low=0, high=1, epsilon=30.0, blocks=3)),
    ]
    said = "no private row was made from those of others"
    for each in released:
        assert said in each.certificate.explain()
    checked = hs.check_population(rows / 40, UNIT, epsilon=1.0)
    assert said in hs.certify(checked).explain()
    asked = hs.AboveThreshold(5.0, epsilon=1.0).certificate.explain()
    assert "every answer that was asked moves by at most 1" in asked
    assert said not in asked
