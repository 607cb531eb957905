"""Each release puts people into a new random order, so that its gamma is about another pair."""

import numpy as np
import pytest

import hushed as hs

COSTS = hs.populations.Users(hs.populations.Uniform(low=0, high=1), sizes={1: 0.5, 3: 0.5})


def first_person(rows):
    """Sum of whoever comes first, who alone decides."""
    return rows[rows[:, 0] == 0, 1].sum()


def all_people(rows):
    """Mean, which minds no order."""
    return np.sort(rows[:, 1]).mean()


def sample(function, **more):
    """A sensitivity of ten people at gamma = 0.1."""
    settings = {"rows": 10, "gamma": 0.1, "calibration": "marginal", "user": 0}
    return hs.sample_sensitivity(function, COSTS, **(settings | more))


BLOCKS = hs.Blockwise(all_people, rows=5, user=0)
AGAIN = [
    (first_person, {}),
    (first_person, {"position": "worst"}),
    (all_people, {}),
    (BLOCKS, {}),
    (BLOCKS, {"symmetric": True}),
]


@pytest.mark.parametrize(("function", "more"), AGAIN)
def test_gamma_of_people_is_paid_for_every_order(function, more, tmp_path):
    """Compositions and budgets add it up, so that a third release does not fit into two gammas."""
    s = sample(function, **more)
    mechanism = hs.Laplace(s, epsilon=0.25)
    assert hs.union_gamma([mechanism.guarantee] * 3) == pytest.approx(0.3)
    assert hs.compose([mechanism] * 3).guarantee.gamma == pytest.approx(0.3)
    private = COSTS.draw(np.random.default_rng(1), 10)
    with hs.Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=9, gamma=0.2, unit="user"))
        for _ in range(2):
            released = hs.release(function, private, mechanism, ledger, budget="b")
            assert "gamma counts for each release anew" in released.certificate.explain()
            assert hs.verify(released.certificate, function, population=COSTS).reproduced
        with pytest.raises(hs.errors.Overspent, match="gamma"):
            hs.release(function, private, mechanism, ledger, budget="b")
        balance = ledger.balance("b")
        assert balance.spent.gamma == pytest.approx(0.2)
        assert "spends its gamma for each release" in balance.explain()


def test_gamma_of_people_without_an_order_is_paid_once():
    """A symmetric function gives the same answer for every order: it is the same pair again."""
    mechanism = hs.Laplace(sample(all_people, symmetric=True), epsilon=0.25)
    assert hs.compose([mechanism] * 3).guarantee.gamma == 0.1
    released = hs.release(all_people, COSTS.draw(np.random.default_rng(1), 10), mechanism)
    assert "anew" not in released.certificate.explain()


def test_releases_of_one_table_show_people_in_different_orders():
    """Answers nearly without noise are those of different people: other pairs may fail."""
    mechanism = hs.Laplace(sample(first_person), epsilon=1e6)
    private = COSTS.draw(np.random.default_rng(1), 10)
    answers = {
        round(float(hs.release(first_person, private, mechanism).value), 3) for _ in range(9)
    }
    assert len(answers) > 2  # all but one or two equal ones: 10^-5


def test_a_certificate_that_names_an_estimate_of_an_order_is_refused():
    """Whoever adds the name would pay gamma once for all orders."""
    certificate = hs.release(
        first_person,
        COSTS.draw(np.random.default_rng(1), 10),
        hs.Laplace(sample(first_person), epsilon=1.0),
    ).certificate
    written = certificate.to_json()
    assert '"estimates": []' in written
    forged = written.replace('"estimates": []', '"estimates": [["0", 0.1]]')
    with pytest.raises(hs.errors.ParameterError, match=r"estimates are not sampling\.gamma"):
        hs.Certificate.from_json(forged)
