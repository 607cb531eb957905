"""The token of a client in a file of its own: refused where others may read it, shown nowhere."""

from __future__ import annotations

import json
import os
import traceback
import zlib

import pytest

from hushed import connect
from hushed.errors import NotFound, ParameterError, Refusal

TOKEN = "hsh_0123456789ab_" + "s" * 43 + "_01234567"
WHOLE = "hsh_0123456789ab_" + "s" * 43 + "_" + f"{zlib.crc32(TOKEN[:-9].encode()):08x}"
PEM_ASKED = b'{"keys": [{"pem": "a key"}]}'


@pytest.fixture(autouse=True)
def away(monkeypatch, tmp_path):
    for each in ("HUSHED_TOKEN", "HUSHED_TOKEN_FILE"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def shown_by(**given):
    """What is sent to the server as the token."""
    sent = []

    def send(method, path, headers, body):
        sent.append(headers["authorization"])
        return 200, {}, b'{"id": "ana"}' if path == "/v1/me" else PEM_ASKED

    client = connect("https://stats.example.org", send=send, **given)
    assert TOKEN not in repr(client) + str(client) + repr(client.line) + str(client._repr_html_())
    assert len(set(sent)) == 1
    return sent[0].removeprefix("Bearer ")


def write(path, text=TOKEN + "\n", mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def test_it_is_read_from_the_file(tmp_path, monkeypatch):
    """By name, by a path from home, by the environment; what is given comes first."""
    file = write(tmp_path / "token")
    assert shown_by(token_file=file) == TOKEN
    assert shown_by(token_file=str(file)) == TOKEN
    monkeypatch.setenv("HOME", str(tmp_path))
    assert shown_by(token_file="~/token") == TOKEN
    assert shown_by(token_file=write(tmp_path / "marked", f"\ufeff{TOKEN}\n")) == TOKEN
    monkeypatch.setenv("HUSHED_TOKEN_FILE", str(file))
    assert shown_by() == TOKEN
    monkeypatch.setenv("HUSHED_TOKEN", "another")
    assert shown_by() == "another"
    assert shown_by(token="given") == "given"
    assert shown_by(token_file=file) == TOKEN


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o644, 0o666])
def test_a_file_that_others_may_touch_is_refused(tmp_path, mode):
    """Before anything is sent, and also behind a link that looks private."""
    file = write(tmp_path / "token", mode=mode)
    link = tmp_path / "link"
    link.symlink_to(file)
    for each in (file, link):
        with pytest.raises(ParameterError, match="chmod 600"):
            connect("https://stats.example.org", token_file=each, send=lambda *_: 1 / 0)


def test_no_message_shows_a_token(tmp_path):
    """A token in the wrong place, two of them, none, no file, a folder: each refusal is clear."""
    tries = [
        *(
            ({"token_file": each}, "give it as token")
            for each in (TOKEN, f" {TOKEN}", f"Bearer {TOKEN}", f'"{TOKEN}"', f"{tmp_path}/{TOKEN}")
        ),
        ({"token_file": "~nobody-of-this-name/token"}, "cannot be read"),
        ({"token_file": "a\0b"}, "cannot be read"),
        ({"token_file": ""}, "the token cannot be read (Is a directory) of the file"),
        ({"token_file": write(tmp_path / "two", f"{TOKEN}\n{TOKEN}\n")}, "more than one"),
        ({"token_file": write(tmp_path / "long", TOKEN + " " * 5000 + TOKEN)}, None),
        ({"token_file": write(tmp_path / "none", "")}, "holds no token"),
        ({"token_file": write(tmp_path / "other", "secret words")}, "holds no token"),
        ({"token_file": tmp_path / "absent"}, "cannot be read (No such file or directory) of"),
        ({"token_file": tmp_path / "tokens"}, "tokens; did you mean 'token'?"),
        ({"token_file": tmp_path}, "for that is a folder: name a file in it"),
        ({"token_file": write(tmp_path / "token"), "token": TOKEN}, "not both"),
        ({}, "a token is needed"),
        ({"token": TOKEN + "\n"}, None),
        ({"token": f"{TOKEN}\n{TOKEN}"}, "a token is needed"),
    ]
    for given, said in tries:
        try:
            shown_by(**given)
        except (NotFound, ParameterError) as error:
            told = "".join(traceback.format_exception_only(error)) + str(error)
            assert said is None or said in told, told
            assert TOKEN not in told
            assert "secret words" not in told
        else:
            assert said is None


@pytest.mark.parametrize(
    "cut", [WHOLE[:-1], f'"{WHOLE}"', WHOLE[:16], f"{WHOLE[:-9]}x{WHOLE[-8:]}"]
)
def test_a_token_that_was_cut_off_or_quoted_is_told_from_one_that_ended(cut):
    """The checksum tells, and nothing of the token is shown."""
    asked = json.dumps({"code": "unauthorized", "title": "No token that counts was shown"}).encode()
    for given, told in ((cut, True), (WHOLE, False)):
        with pytest.raises(Refusal, match="No token that counts") as refused:
            connect("https://stats.example.org", given, send=lambda *_: (401, {}, asked))
        assert ("is no whole token" in str(refused.value)) is told
        assert WHOLE.split("_")[2] not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("path", ["/pages", "/pages/", "/pages/enter#hsh_secret", "/#hsh_secret"])
def test_an_address_of_the_pages_is_told_from_that_of_the_server(path):
    with pytest.raises(ParameterError, match="address of the pages") as refused:
        connect(f"https://stats.example.org{path}", TOKEN, send=lambda *_: 1 / 0)
    assert "hsh_secret" not in str(refused.value)
