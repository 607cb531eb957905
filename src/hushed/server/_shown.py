"""What the server answers, as OpenAPI describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from hushed.server._requests import State
from hushed.server._tokens import Use
from hushed.tables import Query

Item = TypeVar("Item")
RETRY_AFTER = {"pending": "60", "charged": "1"}  # seconds after which to look again


class _Shown(BaseModel):
    model_config = ConfigDict(extra="forbid")


def tell(shown: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with what is shown, written by the thread that has found it."""
    return Response(shown.model_dump_json(), status, headers, "application/json")


class Listed(_Shown, Generic[Item]):
    """A part of a list; ``cursor`` asks for what follows."""

    items: list[Item]
    cursor: str | None = None


class Left(_Shown):
    """What is left of a budget for new charges; half of a delta buys tighter sums of epsilon."""

    epsilon: float
    delta: float


class ShownShare(_Shown):
    """Your share of a data set."""

    dataset: str
    epsilon: float
    delta: float
    gamma: float = 0.0  # where it is 0, functions cannot be asked
    gamma_left: float = 0.0  # for estimates that were not asked of yet
    reserved: bool = False  # set aside: nobody else can spend it
    left: Left
    per_day: float | None = None  # the most epsilon that may be charged in a day
    left_today: float | None = None  # of it
    today: str | None = None  # the day that counts now, of UTC


class KeptShare(ShownShare):
    """A share, to a steward."""

    spent_before: float  # epsilon of the shares that this person had earlier, and count no more


class ShownMe(_Shown):
    """Who asks."""

    id: str
    name: str
    role: str
    token_expires: str
    quote_only: bool
    shares: list[ShownShare]


class ShownColumn(_Shown):
    """A column, as far as it is public."""

    name: str
    kind: str
    low: float | None
    high: float | None
    keys: list[bool | int | str] | None


class ShownDataset(_Shown):
    """A data set, as far as it is public."""

    id: str
    unit: Literal["row", "user"]
    user: str | None
    max_rows_per_user: int | None  # of each person that count, for all who ask
    columns: list[ShownColumn]
    max_epsilon: float
    max_delta: float
    approve_above: float | None
    open: bool
    share: ShownShare | None


class ShownOutput(_Shown):
    """The error of one output."""

    name: str
    error: float | None
    share: float


class ShownQuote(_Shown):
    """A price."""

    epsilon: float
    delta: float
    neighbours: str
    unit: str
    level: float
    threshold: int | None
    outputs: list[ShownOutput]
    words: str
    needs_approval: bool
    gamma: float = 0.0  # of a function: the probability that epsilon and delta fail
    outsider: str = ""  # of a function: what an outsider could learn
    fits: bool | None = None
    left: Left | None = None
    left_after: Left | None = None
    left_today: float | None = None  # of a share with a limit for each day
    short: str = ""  # which parts do not fit the share, and what is left of them


class ShownOutlook(_Shown):
    """Whether a request that waits could be approved now."""

    why_not: str  # empty if nothing would keep it from that


class ShownRequest(_Shown):
    """A request."""

    id: str
    dataset: str
    asker: str
    state: State
    key: str
    query: Query | None
    function: str | None = None  # in place of a query
    epsilon: float
    delta: float
    noise: str
    note: str
    entry: int | None
    asked_at: str
    charged_at: str | None
    readable_at: str | None
    decided_by: str | None
    reason: str | None
    kept_until: str | None = None  # an answer is deleted then; without it, never
    deleted_at: str | None = None  # when it was
    answer_sha256: str | None = None  # of one that was deleted; for those who may read it


class ShownFunction(_Shown):
    """A registered function, and what is promised of its releases."""

    id: str
    dataset: str
    says: str
    noise: str
    numbers: int
    unit: str
    neighbours: str
    protect: str
    gamma: float
    population: str
    rows: list[int] | None = None  # rows, or people, of the tables that it is promised for
    words: str
    outsider: str
    record: str = ""  # digest of what was registered: a request that names it is for no other
    min_epsilon: float
    max_epsilon: float
    approve_above: float | None
    answer_grid: float  # seconds
    open: bool
    closed: str = ""  # why it cannot be asked
    share: ShownShare | None


class ShownToken(_Shown):
    """A token, without what opens the door."""

    id: str
    made: str
    expires: str
    revoked: str | None
    last_used: str | None
    datasets: list[str] | None
    quote_only: bool
    addresses: list[str]
    use: Use


class ShownPerson(_Shown):
    """Somebody who may ask, or steward."""

    id: str
    name: str
    role: str
    active: bool
    made: str
    kept: int  # bytes of what was asked and answered
    tokens: list[ShownToken]


class NewToken(_Shown):
    """A token that was just made: it is shown this once."""

    id: str
    token: str
    address: str | None  # what opens the pages once with it, if it is for them


class ShownBudget(_Shown):
    """Where a budget stands."""

    name: str
    epsilon: float
    delta: float
    unit: str
    neighbours: str
    method: str
    charges: int
    used: float
    left: Left


class ShownEntry(_Shown):
    """A charge."""

    number: int
    at: str
    epsilon: float
    delta: float
    note: str
    request: str | None
    digest: str


class ShownEvent(_Shown):
    """An event of the trail."""

    number: int
    at: str
    actor: str
    action: str
    about: str
    address: str


class ShownKey(_Shown):
    """A public key of certificates, as a JSON Web Key and in PEM."""

    kty: Literal["OKP"] = "OKP"
    crv: Literal["Ed25519"] = "Ed25519"
    use: Literal["sig"] = "sig"
    kid: str
    x: str
    pem: str
    valid_from: str = ""  # when it began to sign
    valid_until: str | None = None  # when another one took its place


class ShownKeys(_Shown):
    """The keys that certificates are signed with."""

    keys: list[ShownKey]


class ShownHealth(_Shown):
    """That the server is there."""

    status: Literal["alive", "ready"]


class ShownSignature(_Shown):
    """A signature, in base64."""

    keyid: str
    sig: str


class ShownEnvelope(_Shown):
    """A signed certificate: a DSSE envelope, whose payload is base64."""

    payloadType: str  # noqa: N815  (named by DSSE)
    payload: str
    signatures: list[ShownSignature]
