"""Options of ``hushed release``, some of ``hushed statistic``, too; the command has the default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hushed._functions._gate import Outside as Handling
from hushed.cli._calibration import MechanismName
from hushed.cli._options import option
from hushed.cli._panels import LEDGER, NOISE, OUTPUT, ROWS
from hushed.spaces import Norm as Norms

Epsilon = Annotated[float | None, option("Privacy loss, in nats. This or --error.", NOISE)]
Error = Annotated[
    float | None,
    option("Error you can live with, for the smallest epsilon that keeps to it.", NOISE),
]
Beta = Annotated[float | None, option("Chance of a larger error; 0.05 by default.", NOISE)]
Mechanism = Annotated[MechanismName, option("What adds the noise.", NOISE)]
Delta = Annotated[float | None, option("Slack, for the Gaussian.", NOISE)]
Norm = Annotated[
    Norms | None,
    option("Where the mechanism takes several: exponential, sup (default) or range.", NOISE),
]
Lattice = Annotated[
    int | None, option("Bernstein: intervals along each axis; 10 by default.", NOISE)
]
Dims = Annotated[int | None, option("Bernstein: dimension of the cube; 1 by default.", NOISE)]
Order = Annotated[int | None, option("Bernstein: order of the operator; 1 by default.", NOISE)]
Outside = Annotated[
    Handling, option("What to do with private rows outside of the public range.", ROWS)
]
Remark = Annotated[str, option("Remark for the ledger.", LEDGER, "--note")]
Out = Annotated[Path | None, option("Write the certificate as JSON.", OUTPUT)]
Html = Annotated[Path | None, option("Write the certificate as a page.", OUTPUT)]
Force = Annotated[
    bool, option("Replace files that are not earlier certificates.", OUTPUT, "--force")
]
