"""The certificate itself: what was promised, by which argument, from which inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from hushed._ground.calls import called_as, given_by
from hushed._ground.checks import is_whole
from hushed._ground.json_text import load_once
from hushed._ground.notebook import Card, Shown
from hushed._ground.printing import flat, format_down, format_up, list_problems, name_changed
from hushed._ground.read_only import read_state
from hushed.errors import DoesNotHold, ParameterError
from hushed.guarantee import Guarantee, Neighbours
from hushed.releasing._consistency import check_agreement
from hushed.releasing._stated_error import StatedError, state_error
from hushed.releasing._words import explain_certificate
from hushed.sensitivity import Route, SamplingFacts
from hushed.spaces import Norm

if TYPE_CHECKING:
    from pydantic import ConfigDict, TypeAdapter


_CLOSED: ConfigDict = {"extra": "forbid", "allow_inf_nan": False, "strict": True}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SamplingRecord(Shown, SamplingFacts):
    """How the sensitivity was sampled: enough to do it again with the same function.

    Its other fields are those of `hushed.sensitivity.SamplingFacts`.

    Parameters
    ----------
    population : dict
        The public source; no more than its kind and name if it was made from the private rows.
    population_is_public : bool
        False if the caller admitted that it was made from the private rows.
    route : {"independent", "disjoint", "given-the-rest", "resampled"}
        Which rows each trial saw; see `hushed.sensitivity.Design`.
    public_rows, tables : int
        Rows of the public table, and how many disjoint trials they would make; 0 for any other
        population, and for one that was made from the private rows.
    support : tuple of (str, float or None, float or None, bool)
        Public ranges that the population keeps to: column, empty where a row is one number; low and
        high end, None for an open one; whether values may be missing. Empty if the population was
        made from private rows.
    values : tuple of tuple
        Cells of the given rows that a record may be replaced by; empty unless ``protect`` is
        ``"table"``.
    container : str
        What held the rows.
    movements : tuple of float
        Sampled movements, sorted upwards; at most 201 evenly spaced ranks of them. Empty if the
        population was made from private rows.
    largest : float
        Largest absolute number in the answers on the drawn tables; 0 if the population was made
        from private rows.
    environment : dict of str
        What the last bits of the movements depended on: versions, processor, BLAS kernels.
    names : tuple of str
        Names of the numbers of the answer, in their order: those that the function gave on drawn
        tables, never those of the private rows. Empty if it gave none, or if the population was
        made from private rows.
    elsewhere : dict of str to int
        How many movements were measured by workers that differ in this from the process that
        sampled, by what differs. Empty if the population was made from private rows.
    """

    __pydantic_config__ = _CLOSED

    population: dict[str, Any]
    population_is_public: bool
    route: Route
    public_rows: int
    tables: int
    support: tuple[tuple[str, float | None, float | None, bool], ...]
    values: tuple[tuple[bool | int | float | str | None, ...], ...] = ()
    container: str
    movements: tuple[float, ...]
    largest: float
    environment: dict[str, str]
    names: tuple[str, ...] = ()
    elsewhere: dict[str, int] = field(default_factory=dict)

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that was pickled before numbers had names, or a new process was noted."""
        read_state(self, state, "names", "asked_anew")

    def __str__(self) -> str:
        source = flat(self.population.get("name") or self.population.get("kind", "a population"))
        return (
            f"{flat(self.function)} sampled on {self.pairs} pairs of tables of {self.rows} rows "
            f"from {source}; rank {self.rank} was kept, gamma {format_up(self.gamma)} "
            f"({self.calibration})"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MechanismRecord(Shown):
    """The calibrated mechanism.

    Parameters
    ----------
    name : str
        Which one: ``laplace``, ``gaussian``, ``exponential``, ``top-k``, ``bernstein``,
        ``above-threshold``, ``bound-search``, ``inverse-sensitivity``, ``smooth``,
        ``propose-test``, ``stable-mode``, ``blocks``, or the name that a caller's own mechanism
        gives itself.
    parameters : dict
        What it was built with.
    scale : float or None
        Scale of the noise as drawn, in the units of the answer: the enlargement by the grid is
        included. Of a statistic in units that are public: rows for the inverse sensitivity and the
        stable mode, and the smooth sensitivity, which is private. Of blocks in blocks, or votes,
        where a candidate is chosen. Of a caller's own mechanism what it states, if anything.
    grid : int or None
        Answers (or scores) are rounded to multiples of ``2**grid`` first. None for a caller's own
        mechanism: whether it rounds is not known.
    values : int
        Numbers released together, or candidates chosen from.
    accuracy : float or None
        Error that no released number exceeds except with probability 5 %, in the units of `scale`.
    stated : bool, default False
        True if it is a mechanism of the caller's own: that it keeps the guarantee, and all that
        stands here, then rests on the word of its author.
    value_scale : float, optional
        Scale of the Laplace noise on each value that ``above-threshold`` tells, in the units of the
        answers; None if it tells none, and of every other mechanism.
    """

    __pydantic_config__ = _CLOSED

    name: str
    parameters: dict[str, float | int | bool | str]
    scale: float | None
    grid: int | None
    values: int
    accuracy: float | None
    stated: bool = False
    value_scale: float | None = None

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that was pickled before values had a scale, too."""
        read_state(self, state)

    def __str__(self) -> str:
        told = [f"{name} {value}" for name, value in self.parameters.items()]
        if self.scale is not None:
            told.insert(0, f"noise of scale {format_down(self.scale)}")
        many = "values" if self.values > 1 else "value"
        return flat(f"{self.name}, {self.values} {many}: {', '.join(told) or 'no parameters'}")


@given_by("hs.release(f, rows, hs.Laplace(sensitivity, epsilon=1.0)).certificate")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Certificate(Shown):
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
    unsearched : tuple of str
        Kinds of objects, as ``"duckdb.DuckDBPyConnection"``, that the function of `Blocks` or the
        likelihood of a `Posterior` holds, and that were not searched for the private rows. Where a
        sensitivity was sampled, they are in `sampling`.
    statistic : dict, optional
        What `InverseSensitivity`, `Smooth`, `ProposeTest` or `StableMode` released, or what was
        released with its `global_sensitivity`, with its public range and number of rows; None for
        any other function.
    chain : str
        The steps of a chain whose rows the statistic was computed from, and the space that they
        take. Empty if it was computed from the rows themselves, and of any other function.
    labels : tuple of str
        What each released number is, in order, as whoever released it says: of a private estimator
        the attribute, the feature, the class, and how it is scaled. Empty if nothing is said.
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
    unsearched: tuple[str, ...] = ()
    statistic: dict[str, Any] | None = None
    chain: str = ""
    labels: tuple[str, ...] = ()

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that was pickled before numbers had labels, too."""
        read_state(self, state)

    def __post_init__(self) -> None:
        check_agreement(self)

    @property
    def error(self) -> StatedError:
        """Error of the released answer: ``mechanism.accuracy`` with its level and its unit."""
        return state_error(self)

    def _brief(self) -> str:
        return f"Certificate: {self.mechanism.name}, {self._promise()}"

    def _promise(self) -> str:
        """Say the promise in one line; none is printed smaller than it is."""
        promise = self.guarantee
        changed = name_changed("person" if self.person else promise.unit, promise.distance)
        return (
            f"epsilon {format_up(promise.epsilon)}, delta {format_up(promise.delta)}, gamma "
            f"{format_up(promise.gamma)}; {changed}, "
            f"{promise.neighbours}{'; not a privacy guarantee' * promise.data_dependent}"
        )

    def _card(self) -> Card:
        facts = (
            ("promise", self._promise()),
            ("mechanism", flat(self.mechanism.name)),
            ("error", self.error.explain()),
        )
        return Card(title="Certificate", text=self.explain(), facts=facts)

    def to_json(self) -> str:
        """Write as canonical JSON: sorted keys, two spaces, every double exact.

        Returns
        -------
        str
            One JSON object.

        Raises
        ------
        ParameterError
            If a text on it holds half of a pair of surrogates, which nobody could read again.
        """
        import json  # noqa: PLC0415

        told = _adapter().dump_python(self, mode="json")
        # So what was written before is the same text today.
        _drop_empty(told, "chain", "labels")
        _drop_empty(told["mechanism"], "value_scale")
        _drop_empty(told["sampling"] or {}, "names", "asked_anew")
        try:
            json.dumps(told, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ParameterError(
                "a text that the certificate would show, as a category, a name or an argument, "
                "holds half of a pair of surrogates, so that nobody could read it again: take "
                "another text"
            ) from None
        return json.dumps(told, indent=2, sort_keys=True)

    @classmethod
    @called_as("hs.Certificate.from_json(certificate.to_json())")
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
            If the text is not a certificate of a known version; all problems are listed.
        DoesNotHold
            If it is one, and contradicts itself: it was changed.
        """
        from pydantic import ValidationError  # noqa: PLC0415

        try:
            known = _adapter().validate_json(text)
        except ValidationError as cause:
            problems = list_problems(cause.errors(include_input=False, include_url=False))
            if _names_itself(text):
                raise DoesNotHold(f"the certificate does not hold: {problems}") from None
            raise ParameterError(f"not a hushed certificate of version 1: {problems}") from None
        _check_text(text)
        return known

    def explain(self) -> str:
        """Say in plain words what was and what was not promised.

        Returns
        -------
        str
            A few paragraphs for the people in the table and those who read the answer.
        """
        return explain_certificate(self)


def _drop_empty(told: dict[str, Any], *later: str) -> None:
    """Leave out fields that came later, where they say nothing; False says something."""
    for name in later:
        if name in told and not told[name] and told[name] is not False:
            del told[name]


def _names_itself(text: str | bytes) -> bool:
    """Whether a text says of itself that it is a certificate of this version, changed or not."""
    import json  # noqa: PLC0415

    try:
        told = json.loads(text, parse_constant=int)  # NaN is no JSON: a ValueError
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(told, dict)
        and told.keys() >= {"guarantee", "mechanism"}
        and told.get("schema_version") == 1
    )


def _check_text(text: str | bytes) -> None:
    """Refuse JSON that gives one field twice: other readers may take the other one.

    And a version that only equals 1, as ``true`` does.
    """
    told = load_once(text, "the certificate")
    if not is_whole(told.get("schema_version", 1)):
        raise ParameterError("schema_version must be a whole number")


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Certificate]:
    from pydantic import TypeAdapter  # noqa: PLC0415  (a tenth of a second)

    return TypeAdapter(Certificate)
