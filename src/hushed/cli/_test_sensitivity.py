"""The command ``hushed test-sensitivity``."""

from __future__ import annotations

from typing import Annotated

from hushed._functions._loading import read_function
from hushed.auditing import test_sensitivity as judge
from hushed.cli._inputs import find_user, read_bounds, read_population
from hushed.cli._options import (
    BoundsOption,
    FrameOption,
    FunctionArgument,
    HeaderOption,
    JsonOption,
    KeepOption,
    MissingOption,
    PopulationOption,
    PromiseOption,
    UserOption,
    WorkersOption,
    option,
    read_keep,
)
from hushed.cli._outcome import BAD_USE, REFUSED, finish, print_line
from hushed.cli._panels import AUDIT, CLAIM, PAIRS
from hushed.guarantee import Neighbours
from hushed.spaces import Norm


def test_sensitivity(
    function: FunctionArgument,
    population: PopulationOption,
    rows: Annotated[int, option("Rows in a table; its users with --user.", PAIRS)],
    bound: Annotated[float, option("Declared sensitivity.", CLAIM)],
    gamma: Annotated[float, option("Share of pairs that may move farther.", CLAIM)] = 0.0,
    norm: Annotated[Norm, option("Norm of the movement.", CLAIM)] = "l1",
    neighbours: Annotated[Neighbours, option("How two tables differ.", CLAIM)] = "replace-one",
    pairs: Annotated[int, option("Pairs to draw.", PAIRS)] = 1000,
    confidence: Annotated[float, option("Of each bound on the share.", AUDIT)] = 0.95,
    tolerance: Annotated[
        float, option("Share of the bound that rounding may exceed it by.", AUDIT)
    ] = 0.0,
    promise: PromiseOption = None,
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    missing: MissingOption = None,
    user: UserOption = None,
    symmetric: Annotated[
        bool, option("The order of the rows has no effect.", PAIRS, "--symmetric")
    ] = False,
    bounds: BoundsOption = None,
    seed: Annotated[int, option("Seed of the pairs.", AUDIT)] = 0,
    workers: WorkersOption = None,
    keep: KeepOption = None,
    json: JsonOption = False,
) -> None:
    """Test a declared sensitivity on pairs of tables drawn from a population."""
    # 1 says that a bound is refuted: whatever keeps the test from running is a 2.
    with finish(json=json, stopped="stopped; there is no verdict", refused=BAD_USE) as result:
        source, columns = read_population(
            population,
            frame,
            header=header,
            missing=missing,
            promise=promise,
            bounds=read_bounds(bounds),
        )
        found = judge(
            read_function(function),
            source,
            rows,
            bound=bound,
            gamma=gamma,
            pairs=pairs,
            confidence=confidence,
            norm=norm,
            neighbours=neighbours,
            user=find_user(user, frame, columns, source),
            symmetric=symmetric,
            tolerance=tolerance,
            seed=seed,
            workers=1 if workers is None else workers,
            keep=read_keep(keep, private=False),
        )
        result.update(found.to_dict())
        result["exit_code"] = REFUSED if found.verdict == "refuted" else 0
        if not json:
            print_line(found.explain())
