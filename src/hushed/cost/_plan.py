"""From tolerated errors and a budget to a level, a mechanism and a sentence for the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

from hushed import privacy_loss, risk
from hushed._ground.calls import called_as
from hushed._ground.decimals import decimal_of, read, stated_below, upper_double
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.numeric import COARSE, first_true_near, round_down, round_up
from hushed._ground.printing import (
    flat,
    format_down,
    format_up,
    money_above,
    money_below,
    name_changed,
)
from hushed.accounting._joint import say_once
from hushed.cost._model import CURRENCY, CostModel, epsilon_for_error
from hushed.cost._need import Need, join_promises, known_how, movement_of, unit_of
from hushed.errors import NotFeasible, ParameterError
from hushed.guarantee import Guarantee
from hushed.privacy_loss import PrivacyProfile

Mechanism = Literal["Laplace", "Gaussian"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Choice(Shown):
    """The mechanism chosen for one need.

    Parameters
    ----------
    need : Need
        What was asked for.
    mechanism : {"Laplace", "Gaussian"}
        Which noise.
    scale : float
        Scale of the Laplace noise, or standard deviation of the Gaussian, in the answer's unit.
    epsilon : float
        Level of this release alone, in nats, rounded up.
    delta : float
        Slack of this release alone; 0 for Laplace noise.
    """

    need: Need
    mechanism: Mechanism
    scale: float
    epsilon: float
    delta: float

    def _card(self) -> Card:
        of = "scale" if self.mechanism == "Laplace" else "standard deviation"
        return card_of_facts(
            f"{self.mechanism} noise for {flat(self.need.name)}",
            (
                (of, f"{format_down(self.scale, 4)}, in the unit of the answer"),
                ("error", self.need.accuracy()),
                ("alone", _say_level(self.epsilon, self.delta)),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Shown):
    """Cheapest way to meet every tolerated error, and whether the budget allows it.

    Parameters
    ----------
    choices : tuple of Choice
        One per need.
    epsilon : float
        Joint level of all releases, in nats, rounded up.
    delta : float
        Joint slack.
    cost : float or None
        Worst-case cost, all people together; None without a cost model. With a delta it is
        nominal: full compensation is counted for delta, and the loss exceeds epsilon oftener.
    budget : float or None
        What it may cost; None when no budget was given.
    feasible : bool or None
        Whether the cost fits; None when that cannot be known without a cost model.
    remedies : tuple of str
        What would make it fit, each alone, with numbers.
    sentence : str
        What is planned, for a proposal. It says what is assumed; nothing was released yet.
    gamma : float, default 0
        Joint gamma of the sampled sensitivities, for rows that keep their order; 0 without one.
    """

    choices: tuple[Choice, ...]
    epsilon: float
    delta: float
    cost: float | None
    budget: float | None
    feasible: bool | None
    remedies: tuple[str, ...]
    sentence: str
    gamma: float = 0.0

    def _card(self) -> Card:
        slack = f", gamma {format_up(self.gamma)}" if self.gamma else ""
        facts = [("all together", _say_level(self.epsilon, self.delta) + slack)]
        if self.cost is not None:
            facts.append((f"cost {self._how_sure()}", f"{money_above(self.cost)}{CURRENCY}"))
        if self.budget is not None:
            facts.append(("budget", f"{money_below(self.budget)} in the currency of the costs"))
        if self.feasible is not None:
            facts.append(("fits", "yes" if self.feasible else "no"))
        facts += [("it would fit if you" if self.cost else "to do", e) for e in self.remedies]
        lines = [("release", "noise", "error", "alone")]
        for each in self.choices:
            noise = f"{each.mechanism}, {format_down(each.scale, 4)}"
            alone = _say_level(each.epsilon, each.delta)
            lines.append((flat(each.need.name), noise, each.need.accuracy(), alone))
        known = card_of_facts(self._title(), facts)
        return replace(
            known, lines=tuple(lines), text=f"{known.text}\n\n{self.sentence}", words=self.sentence
        )

    def _title(self) -> str:
        count = len(self.choices)
        return f"Plan of {count} release{'s' * (count > 1)}"

    def _how_sure(self) -> str:
        """Say whether the cost is a bound: with a delta, of which it counts no more, it is none."""
        return "in name, for delta is no chance of the loss" if self.delta else "in the worst case"

    def _brief(self) -> str:
        known = [f"{self._title()}: {_say_level(self.epsilon, self.delta)}"]
        if self.cost is not None:
            known.append(f"cost {money_above(self.cost)}")
        if self.budget is not None:
            known.append(f"budget {money_below(self.budget)}")
        if self.feasible is not None:
            known.append("it fits" if self.feasible else "it does not fit")
        return ", ".join(known)

    def require(self) -> Plan:
        """Return the plan, or refuse it.

        Returns
        -------
        Plan
            The same plan, when it fits or nothing speaks against it.

        Raises
        ------
        NotFeasible
            If the cost exceeds the budget; the message says what would make it fit.
        """
        if self.feasible is False:
            raise NotFeasible(_refusal(self))
        return self


def _say_level(epsilon: float, delta: float) -> str:
    slack = f", delta {format_up(delta)}" if delta else ""
    return f"epsilon {format_up(epsilon)} nats{slack}"


def _refusal(found: Plan) -> str:
    options = "; or ".join(found.remedies)
    return (
        f"not feasible: the tolerated errors need epsilon={format_up(found.epsilon)}, which "
        f"costs {money_above(found.cost or 0.0)} {found._how_sure()}, above the budget of "
        f"{money_below(found.budget or 0.0)}. "
        f"It would fit if you {options}"
    )


@called_as("hs.cost.plan([hs.cost.Need(error=5.0)])")
def plan(
    needs: Sequence[Need],
    *,
    budget: float | None = None,
    model: CostModel | None = None,
    delta: float = 0.0,
) -> Plan:
    """Choose the cheapest level and mechanism for every wanted release.

    Parameters
    ----------
    needs : sequence of Need
        Releases on the same rows, each with its tolerated error; at least one.
    budget : float, optional
        Largest worst-case cost of all releases together; 0 or more.
    model : CostModel, optional
        Cost of a level. Without it the plan says for how much exposure the budget is enough.
    delta : float, default 0
        Joint slack; in [0, 1). Above 0, Gaussian noise is considered and compositions are
        tighter.

    Returns
    -------
    Plan
        The cheapest plan, feasible or not; ``plan(...).require()`` refuses one that is not.

    Raises
    ------
    ParameterError
        If there is no need, a number is out of range, or the sensitivities are for different
        neighbours.

    Notes
    -----
    The cost only grows with the level, so the cheapest level of each release is the smallest one
    that keeps its error. The whole set then uses Laplace or Gaussian noise, whichever has the
    smaller joint level; both joint levels are exact or rounded up.
    """
    if not isinstance(needs, Sequence) or not all(isinstance(one, Need) for one in needs):
        raise ParameterError("needs must be a list of hs.cost.Need", parameter="needs")
    if not needs:
        raise ParameterError("there is nothing to plan: give at least one Need")
    delta = read("delta", delta, up=False)
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must lie in [0, 1), got {delta}", parameter="delta")
    budget = None if budget is None else read("budget", budget, up=False)
    if budget is not None and not budget >= 0:
        raise ParameterError(f"budget must be 0 or more, got {budget}", parameter="budget")
    promise = join_promises(needs)
    choices, epsilon, joint = _cheapest(needs, delta)
    used = delta if _uses_delta(choices, epsilon) else 0.0
    beyond = _beyond(joint, epsilon) if used else 0.0
    cost = None if model is None else model.cost(epsilon, used)
    feasible = None if budget is None or cost is None else cost <= budget
    found = Plan(
        choices=choices,
        epsilon=epsilon,
        delta=used,
        cost=cost,
        budget=budget,
        feasible=feasible,
        remedies=(),
        sentence=_sentence(choices, promise, (epsilon, used, beyond), cost, model),
        gamma=promise.gamma,
    )
    if budget is None or feasible:
        return found
    if model is None:
        share = math.exp(-1.0 / epsilon) if epsilon > 0 else 0.0
        exposure = budget / share if budget < share * 1e300 else math.inf
        return replace(found, remedies=(_exposure(exposure),))
    return replace(found, remedies=_remedies(needs, model, budget, delta, found))


def _beyond(joint: PrivacyProfile, epsilon: float) -> float:
    """Chance that the loss leaves ``[-epsilon, epsilon]``: a conclusion may be a denial, too.

    The laws are symmetric, ``Q(L > e) = P(L < -e)``, so a loss below ``-epsilon`` is at least
    ``exp(epsilon)`` times as rare as one above ``epsilon``.
    """
    one = joint.tail(round_down(epsilon, COARSE))
    return round_up(one * (1 + math.exp(-epsilon)), 2.0**20, ceiling=1.0)


def _laplace(need: Need) -> Choice:
    level = epsilon_for_error(
        need.error, sensitivity=movement_of(need), beta=need.beta, dims=need.dims
    )
    level = round_up(level)
    return Choice(
        need=need, mechanism="Laplace", scale=movement_of(need) / level, epsilon=level, delta=0.0
    )


def _gaussian(need: Need, delta: float) -> Choice:
    # A normal error exceeds z sigma with probability beta; on average it is sigma sqrt(2/pi).
    if need.beta is None:
        factor = math.sqrt(2.0 / math.pi)
    else:
        factor = -NormalDist().inv_cdf(need.beta / need.dims / 2.0)
    sigma = round_down(need.error / factor, COARSE)
    curve = _normal(need, sigma)
    return Choice(
        need=need, mechanism="Gaussian", scale=sigma, epsilon=curve.epsilon(delta), delta=delta
    )


def _normal(need: Need, sigma: float) -> PrivacyProfile:
    return privacy_loss.gaussian(round_up(movement_of(need) / sigma))


def _cheapest(
    needs: Sequence[Need], delta: float
) -> tuple[tuple[Choice, ...], float, PrivacyProfile]:
    """Choices, their joint level, and the curve of their joint loss."""
    plain = tuple(_laplace(need) for need in needs)
    curves = [privacy_loss.laplace(choice.epsilon) for choice in plain]
    joint = privacy_loss.compose(curves)
    pure = joint.supremum
    if delta == 0.0:
        return plain, pure, joint
    epsilon = joint.epsilon(delta)
    if epsilon > 0.99 * pure:  # a delta that buys less than 1 % is not worth stating
        epsilon = pure
    share = stated_below(decimal_of(delta) / len(needs))
    normal = tuple(_gaussian(need, share) for need in needs)
    both = privacy_loss.compose([_normal(choice.need, choice.scale) for choice in normal])
    other = both.epsilon(delta)
    return (normal, other, both) if other < epsilon else (plain, epsilon, joint)


def _uses_delta(choices: tuple[Choice, ...], epsilon: float) -> bool:
    pure = math.fsum(c.epsilon for c in choices)
    return any(c.delta > 0 for c in choices) or epsilon < 0.995 * pure


def _sentence(
    choices: tuple[Choice, ...],
    promise: Guarantee,
    level: tuple[float, float, float],
    cost: float | None,
    model: CostModel | None,
) -> str:
    """Say what is planned; every number on the side that promises less."""
    epsilon, delta, beyond = level
    parts = "; ".join(
        f"{flat(c.need.name)} with {c.mechanism} noise of "
        f"{'scale' if c.mechanism == 'Laplace' else 'standard deviation'} "
        f"{format_down(c.scale, 4)} for a sensitivity of {format_up(movement_of(c.need), 4)}, "
        f"{known_how(c.need)} ({c.need.accuracy()})"
        for c in choices[:8]
    )
    if len(choices) > 8:
        parts += f"; and {len(choices) - 8} more"
    slack = f", delta = {format_up(delta)}" if delta else ""
    slack += f", gamma = {format_up(promise.gamma)}" if promise.gamma else ""
    level_said = f"epsilon = {format_up(epsilon, 4)}{slack}"
    limit = risk.belief(epsilon)
    change, whose = _name_change(choices, promise)
    nominal = "In name only, as a population was made from private rows: " * promise.data_dependent
    text = (
        f"{nominal}We plan to release {parts}. {_condition(choices)} would satisfy "
        f"differential privacy with {level_said}: {_but_for(beyond)}{change} would "
        f"multiply the odds of any conclusion by at most {_factor(epsilon)}, so that someone who "
        f"knows all other records, and thought {_fact(promise, whose)} as likely as not, can "
        "come to believe it to at most "
        f"{format_up(round_up(100 * limit, ceiling=100.0), 4)} %{_may_fail(promise, len(choices))}"
    )
    if cost is None or model is None:
        return text + "."
    return f"{text}. {_say_cost(cost, model, delta)}"


def _say_cost(cost: float, model: CostModel, delta: float) -> str:
    """Say what compensation comes to: with a delta in name only, for more than it may go wrong."""
    share = (
        f"{model.per_person:,.10g} exp(-{model.rate:.10g}/epsilon)"
        f"{f' + {model.floor:,.10g}' if model.floor else ''} per person"
    )
    if not delta:
        return (
            f"In the cost model {share}, compensating all {model.people} people would cost at most "
            f"{money_above(cost)}."
        )
    return (
        f"In the cost model {share}, with full compensation counted for a share of delta, "
        f"compensating all {model.people} people would nominally cost {money_above(cost)}: more "
        "than that share may have to be compensated in full, for delta is not the chance that the "
        "odds change by more."
    )


def _condition(choices: tuple[Choice, ...]) -> str:
    """Say what the promise of a plan rests on, and what it is a promise of."""
    assumed = sum(known_how(c.need) == "assumed" for c in choices)
    what = "together these" if len(choices) > 1 else "this"
    if not assumed:
        return what.capitalize()
    which = "sensitivities are" if assumed > 1 else "sensitivity is"
    return f"If the assumed {which} right, {what}"


def _name_change(choices: Sequence[Choice], promise: Guarantee) -> tuple[str, str]:
    """Name what may change, and whose fact it is: of a person only where each row is said to be."""
    if promise.distance > 1:
        return f"a change of {name_changed(promise.unit, promise.distance)}", "any of them"
    if all(unit_of(c.need) == "person" for c in choices):
        return "one person's record", "that person"
    return f"a change of one {promise.unit}", f"that {promise.unit}"


def _fact(promise: Guarantee, whose: str) -> str:
    """Say what the odds are about: of a record that is surely there, twice epsilon may be told."""
    told = "the presence of" if promise.neighbours == "add-remove" else "a fact about"
    return f"{told} {whose}"


def _may_fail(promise: Guarantee, releases: int) -> str:
    if not promise.gamma:
        return ""
    once = say_once(promise) if releases > 1 else ""
    return (
        f". With a probability of up to gamma = {format_up(promise.gamma)}, over the population "
        f"and the sampler, none of this holds{'. ' * bool(once)}{once.removesuffix('.')}"
    )


def _but_for(chance: float) -> str:
    """Chance that the loss exceeds epsilon: more than delta, which does not bound it."""
    return f"but for a chance of {format_up(chance, 3)}, " if chance else ""


def _factor(epsilon: float) -> str:
    if epsilon >= 700:
        return "a practically unlimited factor"
    return format_up(round_up(math.exp(upper_double(epsilon))), 4)


def _exposure(limit: float) -> str:
    if math.isinf(limit):
        return (
            "say what full compensation is: at so small a level no sum that doubles hold would "
            "cost as much; give per_person and people"
        )
    return (
        f"hold people times full compensation per person at or below {money_below(limit)}; give "
        "per_person and people to decide it"
    )


def _remedies(
    needs: Sequence[Need], model: CostModel, budget: float, delta: float, found: Plan
) -> tuple[str, ...]:
    """List what would make the plan fit, each remedy alone."""
    options = [f"raise the budget to {money_above(found.cost or 0.0)}"]
    least = model.cost(0.0, delta)
    if least < budget:
        factor = _smallest_factor(needs, model, budget, delta)
        if factor is not None:
            errors = ", ".join(
                f"{flat(need.name)} {format_up(need.error * factor, 4)}" for need in needs[:5]
            )
            errors += ", ..." if len(needs) > 5 else ""
            joint = _cheapest(_scaled(needs, factor), delta)[1]
            options.append(
                f"tolerate errors {format_up(factor, 4)} times as large ({errors}), which "
                f"needs a joint epsilon of {format_up(joint, 4)}"
            )
    people = math.floor(budget / ((found.cost or math.inf) / model.people))
    if people >= 1:
        options.append(f"keep at most {people} of the {model.people} people in the rows")
    if 1 < len(needs) <= 10:
        options += _without_one(needs, model, budget, delta)
    return tuple(options)


def _without_one(needs: Sequence[Need], model: CostModel, budget: float, delta: float) -> list[str]:
    """Releases whose absence alone makes the rest fit."""
    found = []
    for i, need in enumerate(needs):
        rest = [other for j, other in enumerate(needs) if j != i]
        if _cost(rest, model, delta) <= budget:
            found.append(f"leave out {flat(need.name)}")
    return found


def _cost(needs: Sequence[Need], model: CostModel, delta: float) -> float:
    choices, epsilon, _ = _cheapest(needs, delta)
    return model.cost(epsilon, delta if _uses_delta(choices, epsilon) else 0.0)


def _scaled(needs: Sequence[Need], factor: float) -> list[Need]:
    return [replace(need, error=need.error * factor) for need in needs]


def _smallest_factor(
    needs: Sequence[Need], model: CostModel, budget: float, delta: float
) -> float | None:
    """Smallest common factor on the errors that fits, rounded up to 4 digits."""

    def fits(factor: float) -> bool:
        return _cost(_scaled(needs, factor), model, delta) <= budget

    found = first_true_near(fits, 2.0, least=1.0, most=1e9, tolerance=1e-6)
    return None if math.isinf(found) else _round_up(found)


def _round_up(factor: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(factor)) - 3)
    return math.ceil(factor / unit) * unit
