"""The certificate itself: what was promised, by which argument, from which inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._functions._environment import facts, packages_in
from hushed._functions._gate import Outside
from hushed._rows._ranges import Range
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours, Protect
from hushed.mechanisms._calibration import Certified, CertifiedName, parameters
from hushed.releasing._consistency import accuracy_of, check_agreement, draw_scale, list_kept_ranks
from hushed.releasing._words import explain_certificate, flat
from hushed.sensitivity import Calibration, Route, Sampling, Sensitivity
from hushed.spaces import Norm

if TYPE_CHECKING:
    from pydantic import ConfigDict, TypeAdapter


_CLOSED: ConfigDict = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRecord:
    """How the sensitivity was sampled: enough to do it again with the same function.

    Parameters
    ----------
    function : str
        Name of the sampled function.
    calibration : {"training-conditional", "marginal", "dkw"}
        How the rank was chosen.
    pairs, rank : int
        Movements drawn and the one kept, counted from the smallest.
    gamma : float
        Probability of failure, any shift included.
    tail_mass, sampling_error : float
        Its two parts: pairs beyond the bound, and the risk of the sampler.
    requested_gamma, asked_pairs : float and int, optional
        What the caller asked for; the rest follows.
    protect : {"record", "everyone", "simultaneous"}
        Whom gamma speaks of.
    rows : int
        Rows in the private table, and in each sampled one unless blocks are averaged.
    seed : int
        Seed of the sampler.
    symmetric, batch : bool
        As declared by the caller.
    population : dict
        The public source; no more than its kind and name if it was made from the private rows.
    population_is_public : bool
        False if the caller admitted that it was made from the private rows.
    route : {"independent", "disjoint", "given-the-rest", "resampled"}
        Which rows each trial saw; see `hushed.sensitivity.Design`.
    public_rows, tables : int
        Rows of the public table, and how many disjoint trials they would make; 0 for any other
        population, and for one that was made from the private rows.
    blocks : int
        Blocks whose answers are averaged; 1 if the function takes the table whole.
    shift : float
        Kullback-Leibler divergence per row that gamma was enlarged for, in nats.
    support : tuple of (str, float or None, float or None, bool)
        Public ranges that the population keeps to: column, empty where a row is one number; low and
        high end, None for an open one; whether values may be missing. Empty if the population was
        made from private rows.
    container : str
        What held the rows.
    shape : tuple of int
        Shape of the answer.
    movements : tuple of float
        Sampled movements, sorted upwards; at most 201 evenly spaced ranks of them. Empty if the
        population was made from private rows.
    largest : float
        Largest absolute number in the answers on the drawn tables; 0 if the population was made
        from private rows.
    threads : int
        Threads that BLAS and OpenMP had while the function ran.
    environment : dict of str
        What the last bits of the movements depended on: versions, processor, BLAS kernels.
    unwatched : tuple of str
        What the function used that could not be watched for changes after it was sampled.
    """

    __pydantic_config__ = _CLOSED

    function: str
    calibration: Calibration
    pairs: int
    rank: int
    gamma: float
    tail_mass: float
    sampling_error: float
    requested_gamma: float | None
    asked_pairs: int | None
    protect: Protect
    rows: int
    seed: int
    symmetric: bool
    batch: bool
    population: dict[str, Any]
    population_is_public: bool
    route: Route
    public_rows: int
    tables: int
    blocks: int
    shift: float
    support: tuple[tuple[str, float | None, float | None, bool], ...]
    container: str
    shape: tuple[int, ...]
    movements: tuple[float, ...]
    largest: float
    threads: int
    environment: dict[str, str]
    unwatched: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismRecord:
    """The calibrated mechanism.

    Parameters
    ----------
    name : {"laplace", "gaussian", "exponential", "bernstein", "top-k", ...}
        Which one.
    parameters : dict
        What it was built with.
    scale : float
        Scale of the noise as drawn, in the units of the answer: the enlargement by the grid is
        included.
    grid : int
        Answers (or scores) are rounded to multiples of ``2**grid`` first.
    values : int
        Numbers released together, or candidates chosen from.
    accuracy : float
        Error that no released number exceeds but with probability 5 %.
    """

    __pydantic_config__ = _CLOSED

    name: CertifiedName
    parameters: dict[str, float | int | bool | str]
    scale: float
    grid: int
    values: int
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What one release promised, and why.

    Parameters
    ----------
    schema_version : {1}
        Version of this record.
    guarantee : Guarantee
        The promise.
    sensitivity : float
        How far the answer can move.
    norm : {"l1", "l2", "sup", "range"}
        Norm of the movement.
    neighbours : {"replace-one", "add-remove"}
        Tables it moves between.
    argument : str
        Why the sensitivity holds.
    sampling : SamplingRecord, optional
        How it was sampled; None if it was proven.
    mechanism : MechanismRecord
        What added the noise.
    versions : dict of str
        Software and processor that made the release.
    created : str
        Time, ISO 8601 in UTC.
    charged : str
        Which budget was charged and what its limit rests on, if there was a ledger.
    person : bool
        True if the caller declared that each row is one person.
    outside : {"clamp", "allow", "no range"}
        What was done with private rows outside of the range of the population: each moved into it,
        or let pass; ``"no range"`` if none is known.
    confirmed : {"", "bits", "rounding"}
        How the function agreed with itself when sampled, asked the first sampled table again just
        before the release: bit for bit, or within rounding, in another environment. Empty if the
        sensitivity was proven, or nothing was released.
    """

    __pydantic_config__ = _CLOSED

    schema_version: Literal[1] = 1
    guarantee: Guarantee
    sensitivity: float
    norm: Norm
    neighbours: Neighbours
    argument: str
    sampling: SamplingRecord | None = field(repr=False)
    mechanism: MechanismRecord
    versions: dict[str, str] = field(repr=False)
    created: str = field(default="")
    charged: str = ""
    person: bool = False
    outside: Literal["clamp", "allow", "no range"] = "no range"
    confirmed: Literal["", "bits", "rounding"] = ""

    def __post_init__(self) -> None:
        check_agreement(self)

    def to_json(self) -> str:
        """Write as canonical JSON: sorted keys, two spaces, every double exact.

        Returns
        -------
        str
            One JSON object.
        """
        import json  # noqa: PLC0415

        return json.dumps(_adapter().dump_python(self, mode="json"), indent=2, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            One JSON object.

        Returns
        -------
        Certificate
            The same certificate.

        Raises
        ------
        ParameterError
            If the text is not a certificate of a known version, or one that contradicts itself;
            all problems are listed.
        """
        from pydantic import ValidationError  # noqa: PLC0415

        try:
            known = _adapter().validate_json(text)
        except ValidationError as cause:
            problems = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'certificate'}: {e['msg']}"
                for e in cause.errors(include_input=False, include_url=False)
            )
            raise ParameterError(
                f"not a hushed certificate of version 1: {flat(problems)}"
            ) from None
        _refuse_doubles(text)
        return known

    def explain(self) -> str:
        """Say in plain words what was and what was not promised.

        Returns
        -------
        str
            A few paragraphs for the people in the table and those who read the answer.
        """
        return explain_certificate(self)


def _refuse_doubles(text: str | bytes) -> None:
    """Refuse JSON that gives one field twice: other readers may take the other one."""
    import json  # noqa: PLC0415

    def once(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ParameterError(f"the certificate states {flat(', '.join(twice))} twice")

    json.loads(text, object_pairs_hook=once)


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Certificate]:
    from pydantic import TypeAdapter  # noqa: PLC0415  (a tenth of a second)

    return TypeAdapter(Certificate)


def certify(
    mechanism: Certified,
    *,
    values: int,
    charged: str = "",
    outside: Outside = "clamp",
    confirmed: Literal["", "bits", "rounding"] = "",
) -> Certificate:
    """Write the certificate of a calibrated mechanism.

    Parameters
    ----------
    mechanism : Laplace, Gaussian, Exponential or Bernstein
        What releases; its sensitivity comes from this package.
    values : int
        Numbers released together, or candidates chosen from; must not depend on the rows.
    charged : str, default ""
        Which budget was charged, and under which terms.
    outside : {"clamp", "allow"}, default "clamp"
        What was done with rows outside of the population's range, if it has one.
    confirmed : {"", "bits", "rounding"}, default ""
        How the function agreed with itself when sampled.

    Returns
    -------
    Certificate
        Depends on no private value.
    """
    sensitivity = mechanism.sensitivity
    if not isinstance(sensitivity, Sensitivity):
        raise ParameterError(
            "only a sensitivity from hs.sample_sensitivity or hs.proven_sensitivity can be "
            f"certified, got {type(sensitivity).__name__}"
        )
    name, options = parameters(mechanism)
    known = sensitivity.sampling.environment if sensitivity.sampling else {}
    scale, grid = draw_scale(mechanism, values)
    return Certificate(
        guarantee=mechanism.guarantee,
        sensitivity=sensitivity.value,
        norm=sensitivity.norm,
        neighbours=sensitivity.neighbours,
        argument=sensitivity.argument,
        sampling=None if sensitivity.sampling is None else _record_sampling(sensitivity.sampling),
        mechanism=MechanismRecord(
            name=name,
            parameters=options,
            scale=scale,
            grid=grid,
            values=values,
            accuracy=accuracy_of(mechanism, values),
        ),
        versions=facts({"hushed", "scipy", *packages_in(known)}),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        charged=charged,
        person=sensitivity.person,
        outside=outside
        if sensitivity.sampling is not None and sensitivity.sampling.support
        else "no range",
        confirmed=confirmed,
    )


def _record_sampling(sampling: Sampling) -> SamplingRecord:
    description = sampling.population
    if sampling.data_dependent:  # ranges, sizes and digests then come from private rows
        description = {key: description[key] for key in ("kind", "name") if key in description}
    return SamplingRecord(
        function=sampling.function,
        calibration=sampling.calibration,
        pairs=sampling.pairs,
        rank=sampling.rank,
        gamma=sampling.gamma,
        tail_mass=sampling.tail_mass,
        sampling_error=sampling.sampling_error,
        requested_gamma=sampling.requested_gamma,
        asked_pairs=sampling.asked_pairs,
        protect=sampling.protect,
        rows=sampling.rows,
        seed=sampling.seed,
        symmetric=sampling.symmetric,
        batch=sampling.batch,
        population=description,
        population_is_public=not sampling.data_dependent,
        route=sampling.design.route,
        public_rows=0 if sampling.data_dependent else sampling.design.public_rows,
        tables=0 if sampling.data_dependent else sampling.design.tables,
        blocks=sampling.blocks,
        shift=sampling.shift,
        support=() if sampling.data_dependent else tuple(map(_range, sampling.support)),
        container=sampling.layout.container,
        shape=sampling.shape,
        movements=() if sampling.data_dependent else _thin(sampling.draws),
        largest=0.0 if sampling.data_dependent else sampling.largest,
        threads=sampling.threads,
        environment=sampling.environment,
        unwatched=sampling.unwatched,
    )


def _range(one: Range) -> tuple[str, float | None, float | None, bool]:
    low, high = (end if math.isfinite(end) else None for end in (one.low, one.high))
    return (one.column, low, high, one.missing)


def _thin(draws: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(draws[list_kept_ranks(draws.size)].tolist())
