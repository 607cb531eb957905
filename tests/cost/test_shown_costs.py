"""How costs and risks are shown: one line, words with units, a card; never raw fields."""

import numpy as np
import pytest

import hushed as hs

MODEL = hs.cost.CostModel(per_person=5500, people=100, floor=2)
NEEDS = [
    hs.cost.Need(error=2, beta=0.05, name="<b>a count"),
    hs.cost.Need(error=30, name="a sum", dims=3),
]
SAMPLED = hs.sample_sensitivity(
    np.mean, hs.populations.Uniform(low=0, high=1), rows=50, gamma=0.1, symmetric=True
)
TIGHT = hs.cost.plan(NEEDS, budget=300, model=MODEL)
EACH = {
    "model": (MODEL, ("5,500.00 per person", "exp(-1/epsilon)")),
    "need": (NEEDS[0], ("in the unit of the answer", "0.95")),
    "plan": (hs.cost.plan(NEEDS[:1]), ("Plan of 1 release", "nats")),
    "plan that fits": (hs.cost.plan(NEEDS, budget=1e9, model=MODEL), ("fits", "1,000,000,000.00")),
    "plan that does not": (
        TIGHT,
        ("in the currency of the model", "it would fit if you", "300.00"),
    ),
    "plan without a model": (hs.cost.plan(NEEDS, budget=300), ("300.00", "per_person")),
    "choice": (TIGHT.choices[1], ("scale", "nats")),
    "optimum": (MODEL.optimum(2.0), ("confidence", "in the currency of the model", "nats")),
    "levels": (MODEL.levels_within(3e5, 2.0), ("smallest epsilon", "nats")),
    "risk": (hs.risk.assess(1.9, 2.0), ("probability", "exact delta")),
    "risk over data": (hs.risk.over_data(hs.Laplace(SAMPLED, epsilon=1.0), 0.5), ("probability",)),
}


@pytest.mark.parametrize("kind", EACH)
def test_each_has_a_line_words_and_a_card(kind):
    """The line is short, and no list of fields; nothing of a name becomes a tag."""
    value, words = EACH[kind]
    line = repr(value)
    assert len(line) <= 240
    assert not line.startswith(f"<{type(value).__name__}(")
    assert "=" not in line.replace("epsilon=", "")
    for text in (str(value), value._repr_html_()):
        assert all(word in text for word in words)
    assert "<b>" not in value._repr_html_()


def test_a_plan_is_one_line_with_cost_and_budget():
    """As a person reads it: what it takes, what it costs, and whether it fits."""
    assert repr(TIGHT).endswith("budget 300.00, it does not fit>")
    assert "Plan of 2 releases: epsilon " in repr(TIGHT)
