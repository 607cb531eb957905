"""How far the log likelihoods of two rows differ, measured on a public population."""

from __future__ import annotations

from typing import Any, Literal

from hushed._ground.calls import called_as
from hushed._ground.printing import as_given
from hushed.engines._choice import Workers, opens_engine
from hushed.errors import ParameterError
from hushed.guarantee import RowUnit
from hushed.populations import Population
from hushed.posterior._candidates import read_points
from hushed.posterior._scores import LogLikelihood, RowLikelihood, StackedLikelihood
from hushed.sensitivity import Blockwise, Calibration, Sensitivity, sample_sensitivity


def score_rows(log_likelihood: LogLikelihood, candidates: Any, *, batch: bool = False) -> Blockwise:
    """Make the function that is sampled and released: the mean over rows of log likelihoods."""
    asked = StackedLikelihood if batch else RowLikelihood
    return Blockwise(
        asked(log_likelihood, read_points(candidates)), rows=1, batch=batch, relative=True
    )


@called_as(
    "hs.sample_likelihood_range(log_likelihood, candidates, population, rows=100, gamma=0.05)"
)
@opens_engine
def sample_likelihood_range(
    log_likelihood: LogLikelihood,
    candidates: Any,
    population: Population,
    *,
    rows: int,
    gamma: float | None = None,
    calibration: Calibration = "training-conditional",
    pairs: int | None = None,
    protect: Literal["record", "everyone"] = "everyone",
    batch: bool = False,
    data_dependent: bool = False,
    unit: RowUnit = "row",
    seed: int | None = 0,
    workers: Workers = None,
    progress: bool = False,
) -> Sensitivity:
    """Measure how far the log likelihoods of two rows of a population differ over the candidates.

    A replaced row moves the log likelihood of a table by what its own two log likelihoods differ,
    whatever the other rows are. So pairs of rows are drawn, and no tables: a pair is cheap, and
    all rows at once can be covered.

    Parameters
    ----------
    log_likelihood : callable
        As `hushed.Posterior` takes it.
    candidates : array of float, shape (k,) or (k, d)
        Public values of the parameter.
    population : Population
        Public source of independent rows; never the private ones.
    rows : int
        Rows of the private table.
    gamma : float, optional
        Probability with which the promise may fail; in (0, 1). By default 0.05.
    calibration : {"training-conditional", "marginal", "dkw"}, default "training-conditional"
        How the rank is chosen.
    pairs : int, optional
        Pairs of rows to draw; as few as gamma allows by default.
    protect : {"record", "everyone"}, default "everyone"
        Whether gamma is for all rows of the table together, each pair at gamma / rows, or for each.
    batch : bool, default False
        Whether the function takes an array of many rows, and gives an array (rows, k): a thousand
        times faster. That it treats each row by itself is then your claim; it is tried on some.
    data_dependent : bool, default False
        Admit that the population was made from the private rows.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.
    seed : int or None, default 0
        Seed of the sampler; None for a fresh one.
    workers : int, str, Engine or distributed.Client, optional
        Worker processes, or a cluster: ``"dask://HOST:8786"``, ``"ray"``, a session of Spark;
        see `hushed.engines.engine_of`.
    progress : bool, default False
        Show a progress bar in a terminal or a notebook.

    Returns
    -------
    Sensitivity
        For `hushed.Posterior`: of the mean log likelihood of the rows, in the range norm.

    Raises
    ------
    ParameterError
        If a parameter leaves its range.
    TooFewPairs, TooFewRows
        If pairs or public rows cannot support gamma.
    BadFunction, RandomFunction
        If the function gives no finite log likelihoods, or others each time.
    BadRows
        If the population gives no rows that can be used.

    Notes
    -----
    Rubinstein and Alda, *Pain-Free Random Differential Privacy with Sensitivity Sampling*, ICML
    2017, on tables of one row.
    """
    if protect not in ("record", "everyone"):
        raise ParameterError(
            f"protect must be 'record' or 'everyone', got {as_given(protect)}", parameter="protect"
        )
    return sample_sensitivity(
        score_rows(log_likelihood, candidates, batch=batch),
        population,
        rows=rows,
        norm="range",
        gamma=gamma,
        calibration=calibration,
        pairs=pairs,
        protect=protect,
        batch=batch,
        data_dependent=data_dependent,
        unit=unit,
        seed=seed,
        workers=workers,
        progress=progress,
    )
