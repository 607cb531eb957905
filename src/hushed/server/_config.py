"""The file of a server: where the tables lie, what is public about them, and the limits."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from hushed._ground.printing import brief, plain_path, suggest
from hushed._ground.types import ColumnType
from hushed.errors import NotFound, ParameterError
from hushed.server._values import say_value

FILE = "hushed.toml"
DUCKDB = "duckdb:///"
_LARGEST = 10_000_000  # bytes of the file
_MOST_MEMORY = 10**15  # no kernel takes more for a limit than some 10**19
MOST_EPSILON = 10.0  # of one request, whatever a data set says
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


def _check_number(value: object) -> object:
    if isinstance(value, bool):  # approve_above = true would be 1, and hold nothing
        raise ValueError("must be a number, and not true or false")  # noqa: TRY004  (Pydantic's)
    return value


Name = Annotated[StrictStr, Field(pattern=_NAME)]
Number = Annotated[float, BeforeValidator(_check_number), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_check_number)]
Key = Annotated[bool | int | StrictStr, Field(union_mode="left_to_right")]


def _check_network(value: str) -> str:
    ipaddress.ip_network(value)
    return value


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65535


def _names_server(url: str) -> bool:
    """Whether an address names a host, this computer where it is http, and asks nothing."""
    parts = urlsplit(url)
    there = parts.scheme == "https" or parts.hostname in ("127.0.0.1", "::1")
    plain = not {"?", "#", "@", " "} & set(url)
    return plain and bool(parts.hostname) and there and parts.port != 0


def _check_seconds(value: float, least: float) -> float:
    """Refuse a time in which no question can be looked at: everybody would be refused."""
    if value < least:
        raise ValueError(f"must be {least:g} or more: to look at a question takes some of it")
    return value


Network = Annotated[StrictStr, AfterValidator(_check_network)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Column(_Section):
    """What is public about a column: its type, and bounds or keys to ask it by."""

    kind: ColumnType | None = None
    low: Number | None = None
    high: Number | None = None
    keys: tuple[StrictBool | int | StrictStr, ...] | None = Field(default=None, max_length=10_000)

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high go together")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError("low must be below high")
        return self


class DatasetSettings(_Section):
    """One data set."""

    source: StrictStr
    table: StrictStr = "rows"
    user: StrictStr | None = None
    header: StrictStr | None = None
    budget: StrictStr
    max_epsilon: Annotated[Number, Field(gt=0)] | None = None
    max_delta: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    answer_grid: Annotated[Number, Field(ge=0, le=3600)] | None = None
    approve_above: Annotated[Number, Field(ge=0)] | None = None  # epsilon of one request
    max_rows_per_user: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] | None = None
    column: dict[StrictStr, Column] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_people(self) -> Self:
        if self.max_rows_per_user is not None and self.user is None:
            raise ValueError("max_rows_per_user is about people: name their column (--user)")
        return self

    def types(self) -> dict[str, ColumnType]:
        """Give the declared types."""
        return {name: each.kind for name, each in self.column.items() if each.kind is not None}


class ServerSettings(_Section):
    """Where the server listens, and who stands before it."""

    listen: StrictStr = "127.0.0.1:8642"
    behind_proxy: StrictBool = False
    public_url: StrictStr | None = None
    trusted_proxies: tuple[Network, ...] = ()
    stewards_read_answers: StrictBool = False
    retention_days: Annotated[StrictInt, Field(ge=1, le=36_500)] | None = None  # else for ever
    mark: Annotated[StrictStr, Field(min_length=1)] = "server.mark"

    metrics: StrictStr | None = None  # where Prometheus asks; this computer alone

    @property
    def host(self) -> str:
        """Address to listen on."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """Port to listen on."""
        return int(self.listen.rpartition(":")[2])

    @property
    def address(self) -> str:
        """Where the server is found."""
        return (self.public_url or f"http://{self.listen}").rstrip("/")

    @property
    def path(self) -> str:
        """What every address begins with, as who asks sees it; a proxy takes it away."""
        return urlsplit(self.address).path

    @property
    def secure(self) -> bool:
        """Whether what reaches a browser travels encrypted."""
        return self.behind_proxy or self.address.startswith("https://")

    @model_validator(mode="after")
    def _check_listen(self) -> Self:
        host, _, port = self.listen.rpartition(":")
        if not host or not _is_port(port):
            raise ValueError("listen is ADDRESS:PORT, such as 127.0.0.1:8642")
        if host not in ("127.0.0.1", "localhost", "[::1]") and not self.behind_proxy:
            raise ValueError(
                "another address than 127.0.0.1 lets tokens and answers travel unencrypted: put a "
                "proxy with TLS before the server, and say so with behind_proxy = true"
            )
        place, _, port = (self.metrics or "127.0.0.1:0").rpartition(":")
        if place != "127.0.0.1" or not _is_port(port):
            raise ValueError("metrics is 127.0.0.1:PORT: who watches the server is on its computer")
        url = self.public_url
        if url is not None and not url.startswith(("https://", "http://127.0.0.1", "http://[::1]")):
            raise ValueError("public_url begins with https://")
        if url is not None and not _names_server(url):
            raise ValueError("public_url is https://NAME or https://NAME/PATH, and nothing more")
        return self


class LedgerSettings(_Section):
    """Where the ledger is."""

    url: StrictStr = "sqlite:///hushed.db"


class Limits(_Section):
    """What nobody may exceed."""

    body: Annotated[Whole, Field(ge=1024, le=10_000_000)] = 65_536  # bytes
    workers: Annotated[Whole, Field(ge=1, le=64)] = 2  # processes that judge questions
    check_seconds: Annotated[
        Number, Field(le=60), AfterValidator(lambda given: _check_seconds(given, 0.5))
    ] = 2.0  # of a processor, for one question
    check_memory: Annotated[Whole, Field(ge=64_000_000, le=_MOST_MEMORY)] = (
        512_000_000  # bytes, for one question
    )
    runners: Annotated[Whole, Field(ge=1, le=64)] = 2  # processes that read rows
    run_seconds: Annotated[
        Number, Field(le=3600), AfterValidator(lambda given: _check_seconds(given, 1.0))
    ] = 30.0
    run_memory: Annotated[Whole, Field(ge=256_000_000, le=_MOST_MEMORY)] = (
        2_000_000_000  # bytes, for one answer
    )
    queue: Annotated[Whole, Field(ge=1, le=10_000)] = 500
    open_per_person: Annotated[Whole, Field(ge=1, le=10_000)] = 10
    pending_per_person: Annotated[Whole, Field(ge=1, le=1000)] = 5
    kept_per_person: Annotated[Whole, Field(ge=1_000_000)] = 1_000_000_000  # bytes, on the disk
    running_per_person: Annotated[Whole, Field(ge=1, le=100)] = 2
    requests_per_minute: Annotated[Whole, Field(ge=1, le=100_000)] = 120
    answer_grid: Annotated[Number, Field(ge=0, le=3600)] = 1.0  # seconds
    max_epsilon_per_request: Annotated[Number, Field(gt=0, le=MOST_EPSILON)] = 1.0


class Settings(_Section):
    """Everything in the file."""

    format: Literal["hushed server 1"] = "hushed server 1"
    server: ServerSettings = ServerSettings()
    ledger: LedgerSettings = LedgerSettings()
    limits: Limits = Limits()
    dataset: dict[Name, DatasetSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_datasets(self) -> Self:
        folded = [name.lower() for name in self.dataset]
        if len(set(folded)) != len(folded):
            raise ValueError("two data sets have names that differ only in their capitals")
        return self


_HOMES: dict[str, type[_Section]] = {
    "outside of all other sections": Settings,
    "into [server]": ServerSettings,
    "into [ledger]": LedgerSettings,
    "into [limits]": Limits,
    "into [dataset.NAME]": DatasetSettings,
    "into [dataset.NAME.column.COLUMN]": Column,
}


def most_epsilon(dataset: DatasetSettings, limits: Limits) -> float:
    """Give the most that one request may cost."""
    return min(dataset.max_epsilon or limits.max_epsilon_per_request, MOST_EPSILON)


def read_settings(folder: Path) -> Settings:
    """Read the file of a folder; paths in it are from that folder on."""
    path = folder / FILE
    if not path.is_file():
        raise NotFound(
            f"there is no {FILE} in {plain_path(folder)}: name the folder of the server, as by "
            "--folder stats, or make one with hushed serve init"
        )
    if path.stat().st_size > _LARGEST:
        raise ParameterError(f"{plain_path(path)} is too large")
    try:
        return parse_settings(path.read_text(encoding="utf-8-sig"))
    except ValidationError as error:
        raise ParameterError(f"{plain_path(path)}: {explain(error)}") from None
    except OSError as error:
        raise NotFound(
            f"{plain_path(path)} cannot be read ({error.strerror}): it has to belong to the "
            "account that runs the server"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{plain_path(path)} is not TOML: {brief(str(error))}") from None


def parse_settings(text: str) -> Settings:
    """Read settings from a text."""
    return Settings.model_validate(tomllib.loads(text))


def explain(error: ValidationError) -> str:
    """Name the first part that is wrong, a name that is not known before all else, and say how.

    No value is quoted.
    """
    found = error.errors(include_url=False, include_input=False)
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    place = ".".join(str(each) for each in first["loc"])
    said = say_value(first)
    if first["type"] == "extra_forbidden":
        name = first["loc"][-1]
        homes = [home for home, each in _HOMES.items() if name in each.model_fields]
        known = [known for each in _HOMES.values() for known in each.model_fields]
        said = f"belongs {' or '.join(homes)}" if homes else said + suggest(name, known)
    elif first["loc"][-1:] == ("[key]",):
        said = "a name is 1 to 64 of A-Z a-z 0-9 . _ -, and begins with a letter or a digit"
    return f"{brief(place)}: {said}" if place else said


def ledger_address(folder: Path, settings: Settings) -> str:
    """Give the address of the ledger; a file is looked for from the folder on."""
    url = settings.ledger.url
    if not url.startswith("sqlite:///"):
        return url
    return f"sqlite:///{os.path.abspath(folder / url.removeprefix('sqlite:///'))}"


def source_of(folder: Path, source: str) -> str:
    """Give the address of a table; a path is looked for from the folder on."""
    if source.startswith(DUCKDB):
        return f"{DUCKDB}{_join(folder, source.removeprefix(DUCKDB))}"
    return source if "://" in source else _join(folder, source)


def _join(folder: Path, source: str) -> str:
    """Name a file without a way out of the folder and back, unless a link makes that another one.

    Messages name it, and whoever adds a file has not named it from the folder on.
    """
    path = folder / source
    plain = os.path.normpath(path)
    return plain if os.path.realpath(plain) == os.path.realpath(path) else str(path)


def digest_of(found: DatasetSettings) -> str:
    """Digest what a data set is, so that a change of the file is noticed."""
    told: Any = found.model_dump(mode="json")
    if found.max_rows_per_user is None:  # what was confirmed before there was this is as it was
        del told["max_rows_per_user"]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
