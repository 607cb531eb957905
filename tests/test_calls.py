"""A call that does not fit is refused with one that works: of all that users can call."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import hushed as hs
import hushed.client
from hushed._ground.calls import called_as
from hushed.errors import HushedError, ParameterError

# Given by what has an example of its own, and of no use before: nobody makes one.
RECORDS = {
    "Asked", "Assessment", "Balance", "BestPolynomial", "BernsteinPolynomial", "Bracket", "Budget",
    "Choice", "Client", "DataRisk", "Design", "DistanceStep", "Distances", "Done", "Entry",
    "FitErrors", "Grid", "KeptRun", "Lacks", "LedgerEntry", "LeftOut", "Measurement", "Mode",
    "MechanismRecord", "Moment", "Numeric", "Optimum", "Plan", "Prepared", "PrivacyProfile",
    "QuotedErrors", "QuotedOutput", "Raised", "Rank", "Sampling", "SamplingFacts", "SamplingRecord",
    "SensitivityCheck", "SensitivityTest", "ServedAnswer", "ServedFunction", "ServedQuote",
    "ServedRelease", "ServedTable", "Simulation", "Specimen", "StatedError", "StatementCheck",
    "Step", "Task", "Transformation", "Verification", "Witness",
}  # fmt: skip
INSIDE = {"run_span", "rebuild", "choose_design", "support"}  # the library calls these by itself
SOURCE = Path(hs.__file__).parent


def _public() -> dict[str, Any]:
    """Give what users can call, by the name that they write."""
    modules = sorted(
        path.stem if path.is_file() else path.name
        for path in SOURCE.iterdir()
        if not path.name.startswith("_")
        and (path.suffix == ".py" or (path / "__init__.py").exists())
    )
    found: dict[int, tuple[str, Any]] = {}
    for module in ("", *(f".{each}" for each in modules if each != "cli")):
        home = importlib.import_module(f"hushed{module}")
        for name in getattr(home, "__all__", ()):
            each = getattr(home, name)
            if inspect.isfunction(each) or (inspect.isclass(each) and not _is_type_alone(each)):
                found.setdefault(id(each), (f"hs{module}.{name}", each))
    return {
        name: each
        for name, each in found.values()
        if name.split(".")[-1] not in INSIDE
        and (name.count(".") == 1 or each.__name__ not in RECORDS)
    }


def _is_type_alone(each: Any) -> bool:
    return (
        getattr(each, "_is_protocol", False)
        or issubclass(each, BaseException)
        or not each.__module__.startswith("hushed")
    )


PUBLIC = _public()


def _told(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(ParameterError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_call_that_does_not_fit_is_told_one_that_works(name: str) -> None:
    """By a wrong name (none has an argument of that one), with too many arguments, with none."""
    call = PUBLIC[name]
    if name != "hs.Query":  # names its columns by itself
        told = _told(call, no_such_argument=1)
        assert told.startswith(f"{call.__name__} has no argument no_such_argument (it has ")
        assert _example(told)
    if name != "hs.transformations.stack":  # takes as many as there are columns
        told = _told(call, *range(40))
        assert "without a name, got 40" in told
        assert _example(told)
    needed = [
        each.name
        for each in inspect.signature(call).parameters.values()
        if each.default is each.empty and each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}
    ]
    if needed:
        told = _told(call)
        assert told.startswith(f"{call.__name__} lacks {needed[0]}")
        assert _example(told)


@pytest.mark.parametrize(
    "name", sorted(set(PUBLIC) - {"hs.server.serve", "hs.workbench.serve_workbench"})
)
@pytest.mark.parametrize(
    "wrong", [object(), "a", [1, 2], 4], ids=["object", "text", "list", "number"]
)
def test_what_is_of_a_wrong_type_is_refused_in_words(name: str, wrong: Any) -> None:
    """Whatever the arguments are, no error of Python itself comes out."""
    needed = [
        each.name
        for each in inspect.signature(PUBLIC[name]).parameters.values()
        if each.default is each.empty and each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}
    ]
    with suppress(HushedError):  # a few of them are right somewhere
        PUBLIC[name](**dict.fromkeys(needed, wrong))


def _example(told: str) -> str:
    """Read the call that works out of a message: the last one in it."""
    found = re.search(r"(?:as in|as by) (.*)$", told, re.S)
    assert found is not None, told
    compile(found[1], "the call that works", "eval")
    return found[1]


# Need a server, a cluster, a study of their own, or do not come back soon; tested where those are.
ELSEWHERE = {
    "hs.blocks.Pool", "hs.connect",
    "hs.engines.Dask", "hs.engines.Ray", "hs.engines.Spark", "hs.server.create_app",
    "hs.server.serve", "hs.workbench.create_app", "hs.workbench.serve_workbench",
}  # fmt: skip


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples speak of."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "stays.csv").write_text("city,cost\n" + "Bonn,5.5\nUlm,70.25\n" * 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return _names()


def _mean(rows: Any) -> float:
    return float(np.mean(rows))


def _scores(rows: Any) -> Any:
    return np.array([np.sum(rows > 50), np.sum(rows <= 50)])


def _names() -> dict[str, Any]:
    population = hs.populations.Uniform(0, 100)
    sampled = hs.sample_sensitivity(_mean, population, rows=100, gamma=0.05, seed=1, keep="runs")
    answer = hs.table("stays.csv").count().release(epsilon=1.0)
    release = hs.release(_mean, np.linspace(1, 99, 100), hs.Laplace(sampled, epsilon=1.0))
    ledger = hs.Ledger("sqlite:///budgets.db")
    ledger.open_budget("stays", hs.Guarantee(epsilon=1.0))
    private, public = hs.statements.make_key()
    space = hs.spaces.Space(
        domain=hs.spaces.Opaque(size=100), metric=hs.spaces.Metric(name="change-one")
    )
    columns = {"cost": hs.spaces.Cell(low=0.0, high=100.0)}
    source = hs.spaces.Space(
        domain=hs.spaces.Column(cell=columns["cost"]), metric=hs.spaces.Metric(name="symmetric")
    )
    t = hs.transformations
    chain = source >> t.sum_of()

    def mechanism(rows: Any, rng: np.random.Generator) -> float:
        return float(np.round(rows[0]) + rng.geometric(0.5) - rng.geometric(0.5))

    return {
        "stays": Path("stays.csv").absolute(),
        "hs": hs, "np": np, "Fraction": Fraction, "LogisticRegression": LogisticRegression,
        "f": _mean, "scores": _scores,
        "population": population, "sensitivity": sampled, "sampled": sampled,
        "rows": np.linspace(1, 99, 100), "mechanism": mechanism, "answer": answer,
        "table": hs.table("stays.csv"), "certificate": release.certificate,
        "first": hs.certify(answer), "second": hs.certify(answer, note="again"), "columns": columns,
        "sup_sensitivity": hs.proven_sensitivity(1.0, "sup", argument="each score is a count"),
        "l2_sensitivity": hs.proven_sensitivity(1.0, "l2", argument="a vector of length 1"),
        "of_fewer_rows": hs.sample_sensitivity(_mean, population, rows=10, gamma=0.05, seed=1),
        "ledger": ledger,
        "log_likelihood": lambda rows, point: -abs(float(np.mean(rows)) / 100 - point),
        "candidates": [0.1, 0.5, 0.9], "chain": chain, "laplace": hs.measurements.laplace,
        "measurement": chain >> hs.measurements.laplace(2.0), "target": hs.Guarantee(epsilon=1.0),
        "private_key": private, "public_key": public, "space": space, "domain": space.domain,
        "public": pd.DataFrame({"age": range(100), "cost": range(100, 200)}),
        "visits": pd.DataFrame({"patient": [1, 1, 2] * 9, "cost": range(27)}),
        "signed": hs.statements.sign(hs.certify(answer), private),
        "comparison": hs.compare(_mean, population, rows=100, epsilon=1.0, trials=20, seed=1),
        "key": next(each.key for each in hs.runs.list_runs("runs") if "sensitivity" in each.name),
        "report": hs.audit(
            mechanism, [([0.0], [1.0])], claim=hs.Guarantee(epsilon=1.0), samples=2000
        ),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(PUBLIC) - ELSEWHERE))
def test_the_call_that_is_told_works(
    name: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is run, and where a class was called, it gives one of that class."""
    call = PUBLIC[name]
    told = _told(call, *range(40)) if name == "hs.Query" else _told(call, no_such_argument=1)
    monkeypatch.chdir(tmp_path)
    shutil.copy(names["stays"], "stays.csv")
    shutil.copytree(names["stays"].parent / "runs", "runs")
    answer = eval(_example(told), dict(names))
    assert not inspect.isclass(call) or isinstance(answer, call)


def test_a_type_that_is_wrong_is_named_with_what_is_allowed() -> None:
    assert _told(hs.zoo.find, 4) == (
        'find takes str as name, got int: call it as in hs.zoo.find("SVT4")'
    )
    told = _told(hs.certify_budget, [1, 2], "stays")
    assert told.startswith("certify_budget takes Ledger as ledger, got list: ")


def test_what_is_raised_further_in_stays_what_it_is() -> None:
    """Only a call that does not fit is explained: a defect of ours is none of the caller."""

    @called_as("fine(1)")
    def fine(n: int, word: str = "") -> int:
        return len(n) + int(word.no_such_name)  # type: ignore[arg-type,attr-defined]

    with pytest.raises(TypeError, match="has no len"):
        fine(1)
    assert _told(fine, "a", word=[]).startswith("fine takes int as n, got str: ")
    with pytest.raises(AttributeError, match="no_such_name"):
        called_as("fine(1)")(lambda n: n.no_such_name)(1)


CALLED_ON = {
    "quote": (hs.Table, (0.1,)), "release": (hs.Table, ()), "prepare": (hs.Table, (1.0,)),
    "quote_for": (hs.Table, (50,)), "join": (hs.Table, ()), "filter": (hs.Table, ()),
    "open_budget": (hs.Ledger, ()), "charge": (hs.Ledger, ("stays",)), "balance": (hs.Ledger, ()),
    "to_python": (hs.Query, ()), "value": (hs.Answer, ()), "guarantee": (hs.Sensitivity, ()),
    "ask": (hs.AboveThreshold, ()), "table": (hs.client.Client, ()),
    "answer": (hs.tables.Prepared, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CALLED_ON))
def test_a_method_that_is_called_wrongly_shows_a_call(name: str) -> None:
    kind, given = CALLED_ON[name]
    told = _told(getattr(kind, name), object.__new__(kind), *given)
    assert told.startswith(f"{name} ")
    assert f"{name}(" in _example(told)


def _methods() -> dict[str, Any]:
    """Give methods that a user may call with what is no argument, each by its name."""
    statistic = hs.statistics.median(low=0, high=1, rows=9)
    smooth = hs.Smooth(statistic, epsilon=1.0)
    laplace = hs.Laplace(
        hs.proven_sensitivity(1.0, neighbours="replace-one", argument="each counts once"),
        epsilon=1.0,
    )
    populations = hs.populations
    column = hs.spaces.Cell(low=0.0, high=1.0)
    quote = hs.table(pd.DataFrame({"x": [1.0]})).count().quote(epsilon=1.0)
    drawn = {
        "Uniform": populations.Uniform(low=0, high=1),
        "Normal": populations.Normal(mean=0, std=1),
        "Exponential": populations.Exponential(rate=1),
        "PublicTable": populations.PublicTable(np.linspace(0, 1, 50)),
        "Simulator": populations.Simulator(lambda rng, count: rng.random(count)),
    }
    return {f"{name}.draw": each.draw for name, each in drawn.items()} | {
        "Answer.from_json": hs.Answer.from_json,
        "Certificate.from_json": hs.Certificate.from_json,
        "Statement.from_json": hs.Statement.from_json,
        "PopulationCheck.from_json": hs.fitting.PopulationCheck.from_json,
        "MovementCheck.from_json": hs.fitting.MovementCheck.from_json,
        "Query.of": hs.Query.of,
        "Blockwise.blocks": hs.Blockwise(_mean, rows=3).blocks,
        "Laplace.accuracy": laplace.accuracy,
        "Laplace.draw": laplace.draw,
        "Smooth.exceeds": smooth.exceeds,
        "Smooth.losses": smooth.losses,
        "InverseSensitivity.losses": hs.InverseSensitivity(statistic, epsilon=1.0).losses,
        "statistic.distance": lambda bound: statistic.distance([0.5] * 9, bound),
        "statistic.smooth_sensitivity": lambda s: statistic.smooth_sensitivity([0.5] * 9, s),
        "Table.of": hs.spaces.Table.of,
        "Table.cell": hs.spaces.Table.of({"x": column}).cell,
        "Opaque.check": hs.spaces.Opaque(size=3).check,
        "Quote.accuracy": quote.accuracy,
    }


METHODS = _methods()


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_that_is_given_what_is_no_argument_says_so(name: str) -> None:
    """No error of Python itself comes out, whatever is given for each argument."""
    call = METHODS[name]
    needed = [
        each for each in inspect.signature(call).parameters.values() if each.default is each.empty
    ]
    count = max(1, len(needed))
    for wrong in (object(), {"a": object()}, b"\xff", lambda: 0):
        with pytest.raises(HushedError):
            call(*[wrong] * count)
