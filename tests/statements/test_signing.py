"""Signatures: whose they are, over which bytes, and that nothing unsigned is looked at."""

import base64
import json
import sys

import pyarrow as pa
import pytest

import hushed as hs
from hushed import statements
from hushed.errors import MissingExtra, ParameterError
from hushed.statements import _signing

pytest.importorskip("cryptography")


@pytest.fixture(scope="module")
def statement():
    answer = hs.table(pa.table({"a": [1, 2, 3]})).count().release(epsilon=1)
    return hs.certify(answer, data="Clinic 2024", actor="Ada")


@pytest.fixture(scope="module")
def keys():
    return statements.make_key()


def test_what_was_signed_is_read_with_the_public_key(statement, keys):
    """And names the signer; data set and person are then vouched for, too."""
    private, public = keys
    envelope = statements.sign(statement, private)
    assert statements.open_signed(envelope, public) == statement
    assert statements.public_key(private) == public
    found = hs.verify(envelope, key=public)
    assert found.reproduced
    assert statements.key_id(public) in found.explain()
    assert "anybody may have written" not in found.explain()
    unasked = hs.verify(envelope).explain()
    assert "no key was given" in unasked
    assert "anybody may have written" in unasked


def test_the_signature_is_over_the_bytes_that_the_standard_names(statement, keys):
    """Checked by another reading of DSSE: type and lengths are signed, and keyid is a hint."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    private, public = keys
    told = json.loads(statements.sign(statement, private))
    assert set(told) == {"payload", "payloadType", "signatures"}
    body = base64.b64decode(told["payload"])
    assert json.loads(body) == json.loads(statement.to_json())
    kind = "application/vnd.hushed.statement+json"
    signed = " ".join(["DSSEv1", str(len(kind)), kind, str(len(body)), ""]).encode() + body
    signature = base64.b64decode(told["signatures"][0]["sig"])
    load_pem_public_key(public).verify(signature, signed)
    told["signatures"][0]["keyid"] = "somebody"
    assert statements.open_signed(json.dumps(told), public) == statement


def test_no_changed_byte_is_read(statement, keys):
    """Whichever byte of the certificate, or of the signature."""
    private, public = keys
    told = json.loads(statements.sign(statement, private))
    body = base64.b64decode(told["payload"])
    for at in range(0, len(body), len(body) // 60):
        flipped = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        changed = told | {"payload": base64.b64encode(flipped).decode()}
        with pytest.raises(ParameterError, match="no signature of this key"):
            hs.verify(json.dumps(changed), key=public)
    signature = base64.b64decode(told["signatures"][0]["sig"])
    for at in range(len(signature)):
        flipped = signature[:at] + bytes([signature[at] ^ 1]) + signature[at + 1 :]
        changed = told | {"signatures": [{"sig": base64.b64encode(flipped).decode()}]}
        with pytest.raises(ParameterError, match="no signature of this key"):
            statements.open_signed(json.dumps(changed), public)


def test_another_key_another_type_and_no_signature_are_refused(statement, keys):
    """A foreign signer, the signature of something else, and a certificate without one."""
    private, public = keys
    envelope = statements.sign(statement, private)
    with pytest.raises(ParameterError, match="somebody else signed"):
        hs.verify(envelope, key=statements.make_key()[1])
    told = json.loads(envelope)
    with pytest.raises(ParameterError, match="holds no certificate"):
        hs.verify(json.dumps(told | {"payloadType": "application/json"}), key=public)
    with pytest.raises(ParameterError, match="no signature of this key"):
        hs.verify(json.dumps(told | {"signatures": []}), key=public)
    for unsigned in (statement, statement.to_json()):
        with pytest.raises(ParameterError, match="not signed"):
            hs.verify(unsigned, key=public)


def test_one_of_several_signatures_is_enough(statement, keys):
    """As when two people sign."""
    private, public = keys
    other = statements.make_key()
    both = json.loads(statements.sign(statement, other[0]))
    both["signatures"] += json.loads(statements.sign(statement, private))["signatures"]
    for key in (public, other[1]):
        assert statements.open_signed(json.dumps(both), key) == statement


def test_nothing_is_parsed_before_the_signature_was_checked(keys):
    """What a stranger wrote is no certificate, and nobody gets to see that."""
    envelope = {
        "payload": base64.b64encode(b"[" * 10_000).decode(),
        "payloadType": "application/vnd.hushed.statement+json",
        "signatures": [{"sig": base64.b64encode(b"0" * 64).decode()}],
    }
    with pytest.raises(ParameterError, match="no signature of this key"):
        hs.verify(json.dumps(envelope), key=keys[1])


@pytest.mark.parametrize("text", [b"", b"{}", b"-----BEGIN PUBLIC KEY-----\n", "text", None])
def test_what_is_no_key_is_refused(statement, text):
    """Private or public, with the command that makes one."""
    for call in (
        lambda: statements.sign(statement, text),
        lambda: statements.key_id(text),
        lambda: statements.public_key(text),
    ):
        with pytest.raises(ParameterError, match="hushed keys new"):
            call()


def test_a_key_is_read_once_and_never_taken_for_another_one(statement, keys, monkeypatch):
    """A server signs each answer with the same one, and reading it takes longer than signing."""
    read, seen = _signing._read_private, []
    monkeypatch.setattr(_signing, "_read_private", lambda pem: seen.append(pem) or read(pem))
    other = statements.make_key()
    for private, public in (other, other, keys):
        assert statements.open_signed(statements.sign(statement, private), public) == statement
    assert seen == [other[0], keys[0]]
    found = statements.sign(statement, bytearray(keys[0]))
    assert statements.open_signed(found, keys[1]) == statement


def test_a_key_of_the_wrong_side_is_refused(statement, keys):
    """A public one signs nothing, and a private one is not handed around to verify."""
    private, public = keys
    with pytest.raises(ParameterError, match="no private"):
        statements.sign(statement, public)
    with pytest.raises(ParameterError, match="no public"):
        statements.key_id(private)
    with pytest.raises(ParameterError, match="is signed, got str"):
        statements.sign("text", private)


def test_without_the_extra_it_is_named(monkeypatch):
    """Signing needs a package, which everything else does without."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(MissingExtra, match=r"hushed\[sign\]"):
        statements.make_key()
