"""Signatures: Ed25519 over the very bytes of a certificate, in an envelope of DSSE 1.0.

The bytes that are signed name their type, so that a signature of something else never fits; and no
form of JSON has to be agreed on. https://github.com/secure-systems-lab/dsse
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hushed._ground.calls import called_as
from hushed._ground.json_text import drop_mark, load_once
from hushed._ground.printing import brief, shown
from hushed.errors import DoesNotHold, MissingExtra, ParameterError
from hushed.statements._statement import Statement

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PAYLOAD_TYPE = "application/vnd.hushed.statement+json"
_FIELDS = {"payload", "payloadType", "signatures"}
_MOST_SIGNATURES = 100


@called_as("hs.statements.make_key()")
def make_key() -> tuple[bytes, bytes]:
    """Make a key to sign certificates with.

    Returns
    -------
    bytes
        The private key, in PEM and not encrypted: keep it where only you can read it.
    bytes
        The public key, in PEM, for everybody.

    Raises
    ------
    MissingExtra
        If the extra ``hushed[sign]`` is not installed.
    """
    made = _load().Ed25519PrivateKey.generate()
    return _write_private(made), _write_public(made.public_key())


@called_as("hs.statements.public_key(private_key)")
def public_key(private: bytes) -> bytes:
    """Give the public key of a private one.

    Parameters
    ----------
    private : bytes
        What `make_key` gave first.

    Returns
    -------
    bytes
        The public key, in PEM.

    Raises
    ------
    ParameterError
        If it is no private Ed25519 key.
    """
    return _write_public(_read_private(private).public_key())


@called_as("hs.statements.key_id(public_key)")
def key_id(public: bytes) -> str:
    """Name a public key: SHA-256 of its 32 bytes.

    Parameters
    ----------
    public : bytes
        The public key, in PEM.

    Returns
    -------
    str
        64 hexadecimal digits, to be compared over another way than the key came.

    Raises
    ------
    ParameterError
        If it is no public Ed25519 key.
    """
    return hashlib.sha256(_read_public(public).public_bytes_raw()).hexdigest()


@called_as("hs.statements.sign(hs.certify(answer), private_key)")
def sign(statement: Statement, private: bytes) -> str:
    """Sign a certificate.

    Parameters
    ----------
    statement : Statement
        The certificate.
    private : bytes
        The private key, in PEM.

    Returns
    -------
    str
        A DSSE envelope, as JSON, with the certificate inside.

    Raises
    ------
    ParameterError
        If it is no private Ed25519 key, or no certificate.
    MissingExtra
        If the extra ``hushed[sign]`` is not installed.
    """
    if not isinstance(statement, Statement):
        raise ParameterError(
            f"a certificate of hs.certify is signed, got {type(statement).__name__}; of a "
            "Certificate certify the release",
            parameter="statement",
        )
    # In one line, for nobody reads it in the envelope: to indent it takes most of signing it.
    body = json.dumps(statement._content(), sort_keys=True).encode()
    read = _find_signer if isinstance(private, bytes) else _find_signer.__wrapped__
    key, name = read(private)
    made = {"keyid": name, "sig": _encode(key.sign(_pae(body)))}
    return json.dumps(
        {"payload": _encode(body), "payloadType": PAYLOAD_TYPE, "signatures": [made]}, indent=2
    )


@called_as("hs.statements.open_signed(signed, public_key)")
def open_signed(text: str | bytes, public: bytes) -> Statement:
    """Read a signed certificate; nothing of it is looked at before the signature was checked.

    Parameters
    ----------
    text : str or bytes
        The envelope.
    public : bytes
        The public key of whom you trust, in PEM, which came another way than the envelope.

    Returns
    -------
    Statement
        The certificate that was signed.

    Raises
    ------
    ParameterError
        If it is no envelope.
    DoesNotHold
        If no signature in it is of this key, or what was signed contradicts itself.
    MissingExtra
        If the extra ``hushed[sign]`` is not installed.
    """
    key, (body, signatures) = _read_public(public), _read_envelope(text)
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

    for each in signatures:
        try:
            key.verify(each, _pae(body))
        except InvalidSignature:
            continue
        return Statement.from_json(body)
    raise DoesNotHold(
        "no signature of this key fits: the certificate was changed after it was signed, or "
        "somebody else signed it"
    )


def is_signed(text: str | bytes) -> bool:
    """Whether a text is an envelope, whatever it holds."""
    try:
        told = json.loads(drop_mark(text))
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and told.keys() >= _FIELDS


def read_unchecked(text: str | bytes) -> Statement:
    """Read the certificate in an envelope without a look at who signed it."""
    return Statement.from_json(_read_envelope(text)[0])


def read_signer(text: str | bytes, public: bytes | None) -> tuple[Statement, str]:
    """Read a signed certificate, and say who signed it and whether that was checked."""
    if public is not None:
        return open_signed(text, public), f"key {key_id(public)}; the signature was checked"
    known, signatures = read_unchecked(text), json.loads(drop_mark(text))["signatures"][:3]
    if not signatures:
        return known, "nobody: the envelope holds no signature"
    named = ", ".join(shown(str(each.get("keyid", ""))) for each in signatures)
    return known, f"key {named}, as the file says; the signature was not checked"


def _read_envelope(text: str | bytes) -> tuple[bytes, list[bytes]]:
    """Read what was signed, and the signatures."""
    try:
        told = load_once(text, "the envelope")
        kind, signatures = told["payloadType"], told["signatures"][:_MOST_SIGNATURES]
        body, found = _decode(told["payload"]), [_decode(each["sig"]) for each in signatures]
    except ParameterError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ParameterError("this is no DSSE envelope") from None
    if "schema" in told or "schema_version" in told:
        raise ParameterError(
            "the envelope names a schema, as a certificate does that nobody signed: other readers "
            "would take it for that one"
        )
    if kind != PAYLOAD_TYPE:
        raise ParameterError(f"the envelope holds no certificate of hushed, but {brief(str(kind))}")
    return body, found


def _pae(body: bytes) -> bytes:
    """Write type and bytes so that no other pair is written the same: what is signed."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)


def _encode(data: bytes) -> str:
    return base64.standard_b64encode(data).decode("ascii")


def _decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _load() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("a signature", "sign") from None
    return ed25519


def _read_private(pem: bytes) -> Ed25519PrivateKey:
    kind: type[Ed25519PrivateKey] = _load().Ed25519PrivateKey
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        found = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, kind):
        raise ParameterError("this is no private Ed25519 key in PEM, as hushed keys new makes one")
    return found


@lru_cache(maxsize=1)  # a server signs each answer: to read its key takes longer than to sign
def _find_signer(pem: bytes) -> tuple[Ed25519PrivateKey, str]:
    key = _read_private(pem)
    return key, key_id(_write_public(key.public_key()))


def _read_public(pem: bytes) -> Ed25519PublicKey:
    kind: type[Ed25519PublicKey] = _load().Ed25519PublicKey
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    try:
        found = load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, kind):
        raise ParameterError("this is no public Ed25519 key in PEM, as hushed keys new makes one")
    return found


def _write_private(key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_public(key: Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        PublicFormat,
    )

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
