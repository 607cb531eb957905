"""How often each sampled promise fails, and how often it would with one rank lower.

Run with ``python -m benchmarks coverage``; it prints the tables of docs/neighbours.md and
docs/random-privacy.md. 10,000 samplers of each kind, with as few pairs as they need, meet as many
private tables, which are made by plain code that shares nothing with the sampler. Pairs are
independent: so those of all samplers are drawn at once, and then shared out. Predicted: gamma, and
twice as much with one rank lower; less where movements tie, for everyone, and where one promise is
for several sizes or populations. Got: that, within three standard errors (0.002 to 0.004).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import hushed as hs
from hushed.populations import Contaminated, Exponential, Normal, PublicTable, Uniform, Users
from hushed.sensitivity import choose_rank

Array = np.ndarray
Rng = np.random.Generator
Function = Callable[[Any], Any]
Draw = Callable[[Rng, tuple[int, ...]], Array]

SAMPLERS, QUICK = 10_000, 60
GAMMAS = ("0.05", "0.1", "0.25")
ROWS, BLOCKS, REST = 5, 3, 40
GIVEN, INSIDE = (0.0, 1.0, 4.0), (0.0, 0.3, 0.5, 0.8, 1.0)
SIZES = {1: 0.6, 3: 0.3, 40: 0.08, 400: 0.02}  # rows of a person
FAR = 0.04  # share of outliers
MEANS = np.array([-1.0, 0.0, 1.0])
FEW = np.random.default_rng(3).lognormal(size=40)  # a public table by itself
LAW, UNIT = Exponential(rate=1.0), Uniform(low=0, high=1)
PEOPLE = Users(LAW, sizes=SIZES)
MIXED = Contaminated(LAW, Uniform(low=20, high=40), share=FAR)
BY_ITSELF = PublicTable(FEW, promise="table")


def asymmetric(t: Array) -> Array:
    """Treats the first row in a way of its own."""
    return t.mean(axis=-1) + 3 * t[..., 0]


def heavy(t: Array) -> Array:
    """Average of numbers that have no variance."""
    return np.exp(2 * t).mean(axis=-1)


def ties(t: Array) -> Array:
    return np.floor(t).sum(axis=-1)


def weighted(t: Array) -> Array:
    """Not symmetric in the rows, and moved by outliers."""
    return t.max(axis=-1) + t @ np.arange(1.0, t.shape[-1] + 1)


def of_people(t: Array) -> Array:
    """Such a number of people, of whom each is a total and a number of rows."""
    return weighted(t[..., 0]) + t[..., 1].mean(axis=-1)


def of_rows(rows: Array) -> float:
    """The same of rows, each of whose it is and a value."""
    whose = rows[:, 0].astype(int)
    held = [np.bincount(whose, weights=rows[:, 1]), np.bincount(whose)]
    return float(of_people(np.column_stack(held)))


def nearness(rows: Array, means: Array) -> Array:
    return -((rows[:, None] - means) ** 2) / 2


def exponential(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rng.exponential(size=shape)


def uniform(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rng.random(shape)


def mixed(rng: Rng, shape: tuple[int, ...]) -> Array:
    return np.where(
        rng.random(shape) < FAR, rng.uniform(20, 40, shape), rng.exponential(size=shape)
    )


def of_few(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rng.choice(FEW, size=shape)


def people(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Totals and numbers of rows of people."""
    sizes = rng.choice(list(SIZES), p=list(SIZES.values()), size=shape)
    return np.stack([rng.gamma(sizes), sizes], axis=-1)


def put(tables: Array, place: Any, rows: Any) -> Array:
    changed = tables.copy()
    changed[np.arange(len(tables)), place] = rows
    return changed


def moved(kind: str, f: Function, draw: Draw, rng: Rng, runs: int, *, rows: int = ROWS) -> Array:
    """How far private tables move, in all that a promise of this kind is about."""
    x, z, own = draw(rng, (runs, rows)), draw(rng, (runs,)), draw(rng, (runs, rows))
    every, each = range(rows), np.arange(runs)

    def away(others: list[Array]) -> Array:  # a line for each neighbour
        return np.abs(np.stack([f(other) for other in others]) - f(x))

    if kind == "three":
        places, other = rng.permuted(np.tile(np.arange(rows), (runs, 1)), axis=1), x
        for k in range(3):
            other = put(other, places[:, k], own[:, k])
        return away([other])[0]
    if kind in ("record", "worst"):
        moves = away([put(x, i, z) for i in every])
        return moves.max(axis=0) if kind == "worst" else moves[rng.integers(rows, size=runs), each]
    if kind == "all":
        return away([put(x, i, own[:, i]) for i in every]).max(axis=0)
    if kind in ("given", "inside"):
        values = GIVEN if kind == "given" else INSIDE
        return away([put(x, i, v) for i in every for v in values]).max(axis=0)
    more = away([np.concatenate([x[:, :i], z[:, None], x[:, i:]], 1) for i in range(rows + 1)])
    less = away([np.delete(x, i, axis=1) for i in every])
    if kind == "more or less, worst":
        return np.maximum(more.max(axis=0), less.max(axis=0))
    at, gone = rng.integers(rows + 1, size=runs), rng.integers(rows, size=runs)
    return np.maximum(more[at, each], less[gone, each])


@dataclass(kw_only=True)
class Promise:
    """A line of the table: what is sampled, and what private tables do."""

    kind: str = "record"
    asked: Function = asymmetric
    private: Function | None = None  # the same, of what ``draw`` gives
    draw: Draw = exponential
    population: Callable[[int], Any] = lambda _: LAW  # for so many rows
    settings: dict[str, Any] = field(default_factory=dict)
    parts: int = 1  # among which gamma is divided
    divided: float = 1.0  # blocks, of which one has the changed row
    sizes: tuple[int, ...] = (ROWS,)
    seed: int = 0  # each line has its own, so that all are independent

    def sample(self, pairs: int) -> Array:
        """Draw so many movements."""
        drawn = 2 * ROWS if self.settings.get("protect") == "simultaneous" else ROWS + 1
        options = {"rows": ROWS, "batch": "user" not in self.settings}
        options |= {"seed": self.seed, "workers": 1}
        s = hs.sample_sensitivity(
            self.asked, self.population(pairs * drawn), pairs=pairs, **(options | self.settings)
        )
        return self.shuffle(s.draws)

    def shuffle(self, draws: Array) -> Array:
        """Put sorted movements into an order that says nothing."""
        return np.random.default_rng([1, self.seed]).permutation(draws)

    def move(self, rng: Rng, runs: int) -> list[Array]:
        """Movements of private tables of each size."""
        f = self.private or self.asked
        found = [moved(self.kind, f, self.draw, rng, runs, rows=rows) for rows in self.sizes]
        return [each / self.divided for each in found]


class GivenTheRest(Promise):
    """Two fresh records among given others, which all tables have in common."""

    def sample(self, pairs: int) -> Array:
        public = np.random.default_rng(7).exponential(size=2 * pairs + REST)
        table = PublicTable(public, promise="given-the-rest")
        s = hs.sample_sensitivity(weighted, table, rows=ROWS, pairs=pairs, batch=True, workers=1)
        self.others = public[s.sampling.design.dealt[2 * pairs :]]
        return self.shuffle(s.draws)

    def move(self, rng: Rng, runs: int) -> list[Array]:
        rest = rng.permuted(np.tile(self.others, (runs, 1)), axis=1)[:, :ROWS]
        place, own = rng.integers(ROWS, size=runs), rng.exponential(size=(2, runs))
        first, second = (weighted(put(rest, place, each)) for each in own)
        return [np.abs(first - second)]


class Likelihoods(Promise):
    """The range of log likelihoods, for all rows of a table at once."""

    def sample(self, pairs: int) -> Array:
        s = hs.sample_likelihood_range(
            nearness, MEANS, Normal(), rows=ROWS, pairs=pairs, batch=True, workers=1
        )
        return self.shuffle(s.draws)

    def move(self, rng: Rng, runs: int) -> list[Array]:
        old, new = rng.normal(size=(2, runs, ROWS))
        return [2 * np.abs(old - new).max(axis=1) / ROWS]


class Called(Promise):
    """Each sampler by a call and a seed of its own."""

    def sample(self, pairs: int) -> Array:
        options = {"rows": ROWS, "pairs": 19, "batch": True, "workers": 1}
        each = (
            hs.sample_sensitivity(asymmetric, LAW, seed=seed, **options).draws
            for seed in range(pairs // 19)
        )
        rng = np.random.default_rng([1, self.seed])
        return np.concatenate([rng.permutation(draws) for draws in each])


class Several(Promise):
    """The larger one of what two populations keep; private tables are of the first."""

    def sample(self, pairs: int) -> Array:
        laws = (LAW, Normal(mean=1, std=0.3))
        each = [
            Promise(asked=weighted, population=lambda _, law=law: law, seed=self.seed + 100 * k)
            for k, law in enumerate(laws)
        ]
        return np.stack([one.sample(pairs) for one in each], axis=-1)


def public(draw: Draw = exponential) -> Callable[[int], PublicTable]:
    """Make a public table of as many rows as are dealt."""
    return lambda count: PublicTable(draw(np.random.default_rng(5), (count,)))


def public_people(count: int) -> PublicTable:
    """Make one of as many people, with all their rows."""
    rng = np.random.default_rng(5)
    sizes = rng.choice(list(SIZES), p=list(SIZES.values()), size=count)
    whose = np.repeat(np.arange(count), sizes)
    return PublicTable(np.column_stack([whose, rng.exponential(size=len(whose))]))


def promises() -> dict[str, Promise]:
    """What is sampled, by its name in the table."""
    given = {"protect": "table", "values": list(GIVEN)}
    inside = {"protect": "table", "monotone": True}
    change, several = {"neighbours": "add-remove"}, {"rows": (4, 5, 6)}
    simultaneous, worst = {"protect": "simultaneous"}, {"position": "worst"}
    of = {"asked": of_rows, "private": of_people, "draw": people, "population": lambda _: PEOPLE}
    dealt = {"asked": weighted, "population": public()}
    block = hs.Blockwise(weighted, rows=ROWS, batch=True)
    blocks = {"settings": {"rows": BLOCKS * ROWS}, "private": weighted, "divided": BLOCKS}
    own, user = hs.Blockwise(of_rows, rows=ROWS, user=0), {"user": 0}
    found = {
        "one row, asymmetric": Promise(),
        "... each sampler by a call of its own": Called(),
        "one row, heavy tail": Promise(asked=heavy),
        "one row, many ties": Promise(asked=ties),
        "three rows, heavy tail": Promise(kind="three", asked=heavy, settings={"distance": 3}),
        "worst place, asymmetric": Promise(kind="worst", settings=worst),
        "simultaneous, asymmetric": Promise(kind="all", settings=simultaneous),
        "everyone, asymmetric": Promise(kind="all", parts=ROWS),
        "given rows, heavy tail": Promise(kind="given", asked=heavy, settings=given),
        "every row of the range, asymmetric": Promise(
            kind="inside", population=lambda _: UNIT, draw=uniform, settings=inside
        ),
        "one row more or less, heavy tail": Promise(kind="more", asked=heavy, settings=change),
        "... worst place, heavy tail": Promise(
            kind="more or less, worst", asked=heavy, settings=change | worst
        ),
        "... of several sizes, heavy tail": Promise(
            kind="more", asked=heavy, settings=change | several, sizes=(4, 5, 6)
        ),
        "a public table, dealt": Promise(**dealt),
        "... everyone": Promise(kind="all", parts=ROWS, **dealt),
        "... simultaneous": Promise(kind="all", settings=simultaneous, **dealt),
        "... blocks": Promise(asked=block, population=public(), **blocks),
        "... given the rest": GivenTheRest(),
        "... of people, dealt": Promise(**of | {"population": public_people}, settings=user),
        "... by itself": Promise(asked=weighted, draw=of_few, population=lambda _: BY_ITSELF),
        "people of very unequal size": Promise(**of, settings=user),
        "people, three at once": Promise(kind="three", **of, settings=user | {"distance": 3}),
        "people, one more or less": Promise(kind="more", **of, settings=user | change),
        "people, worst place": Promise(kind="worst", **of, settings=user | worst),
        "people, simultaneous": Promise(kind="all", **of, settings=user | simultaneous),
        "people, blocks": Promise(
            **of | {"asked": own}, settings=user | {"rows": BLOCKS * ROWS}, divided=BLOCKS
        ),
        "log likelihoods, all rows": Likelihoods(parts=ROWS),
        "contaminated": Promise(asked=weighted, draw=mixed, population=lambda _: MIXED),
        "several populations": Several(asked=weighted),
    }
    for number, each in enumerate(found.values()):
        each.seed = number
    return found


def failures(promise: Promise, samplers: int) -> list[tuple[float, float]]:
    """Shares of samplers that fail at each gamma, and with one rank lower."""
    pairs = [promise.parts * round(1 / float(gamma)) - 1 for gamma in GAMMAS]
    draws = promise.sample(samplers * max(pairs))
    draws = draws.reshape(samplers, max(pairs), -1)
    real = promise.move(np.random.default_rng([2, promise.seed]), samplers)
    found = []
    for gamma, count in zip(GAMMAS, pairs, strict=True):
        kept = np.sort(draws[:, :count], axis=1).max(axis=2)
        rank = choose_rank("marginal", gamma=Fraction(gamma) / promise.parts, pairs=count).rank
        shares = [[float((moves > kept[:, rank - k]).mean()) for k in (1, 2)] for moves in real]
        found.append(tuple(max(each) for each in zip(*shares, strict=True)))
    return found


def line(name: str, samplers: int) -> str:
    """One line of the table, of the promise of this name."""
    found = failures(promises()[name], samplers)
    return f"| {name} | {' | '.join(f'{share:.3f} ({lower:.3f})' for share, lower in found)} |"


def lines(samplers: int) -> Iterator[str]:
    """The table of docs/neighbours.md."""
    yield "| promise, function | " + " | ".join(f"gamma {gamma}" for gamma in GAMMAS) + " |"
    yield "|---" * (1 + len(GAMMAS)) + "|"
    yield from (line(name, samplers) for name in promises())


def calibrations(samplers: int) -> list[str]:
    """The table of docs/random-privacy.md, for movements of an exponential law."""
    made = [
        "| calibration | pairs | fails | one rank lower | leaves out more than gamma0 | stated |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in ("marginal", "training-conditional", "dkw"):
        rng = np.random.default_rng(4)
        found = choose_rank(name, gamma=Fraction("0.05"))
        draws = np.sort(rng.exponential(size=(samplers, found.pairs)), axis=1)
        left = [np.exp(-draws[:, found.rank - k]) for k in (1, 2)]  # of all pairs
        fresh = rng.random(samplers)
        fails = [f"{(fresh < each).mean():.3f}" for each in left]
        beta = "" if name == "marginal" else f"{found.sampling_error:.4f}"
        more = "" if name == "marginal" else f"{(left[0] > found.tail_mass).mean():.4f}"
        lower = "" if name == "marginal" else f" ({(left[1] > found.tail_mass).mean():.4f})"
        made.append(
            f"| `{name}` | {found.pairs} | {fails[0]} | {fails[1]} | {more}{lower} | {beta} |"
        )
    return made


def main(*, quick: bool) -> None:
    """Print both tables; a quick run has few samplers."""
    samplers = QUICK if quick else SAMPLERS
    for line in lines(samplers):
        print(line, flush=True)
    print()
    print("\n".join(calibrations(samplers)))
