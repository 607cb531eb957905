"""Choose epsilon: from the error that you can live with, and from what it costs people.

Three counts about 800 employees are to be published. Each has an error that is still useful; the
board has a budget for compensation. The script finds the smallest epsilon, says what it means, and
what to give up if it does not fit.
"""

from __future__ import annotations

from hushed import risk
from hushed.cost import CostModel, Need, plan
from hushed.errors import NotFeasible

NEEDS = [
    Need(error=10, beta=0.05, name="staff with back pain"),
    Need(error=10, beta=0.05, name="staff on shifts"),
    Need(error=25, beta=0.05, name="sick days above ten"),
]


def main() -> None:
    found = plan(NEEDS)
    print(f"together the three counts need epsilon = {found.epsilon:.3f}")
    for choice in found.choices:
        print(f"  {choice.mechanism}, epsilon {choice.epsilon:.3f}")

    print("what that lets somebody who knows all others learn about one person, at most:")
    for prior in (0.01, 0.1, 0.5):
        print(f"  belief {prior:.2f} can become {risk.belief(found.epsilon, prior=prior):.3f}")

    staff = CostModel(per_person=1000, people=800)
    try:
        plan(NEEDS, budget=50_000, model=staff).require()
    except NotFeasible as problem:
        print(f"with a budget of 50,000: {problem}")


if __name__ == "__main__":
    main()
