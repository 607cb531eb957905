"""The key that signs certificates is changed: what was signed before is checked by the old one."""

from __future__ import annotations

import io
import json
import os
import stat
from contextlib import closing

import pytest
from tests.server.conftest import make_folder, open_team
from tests.server.test_on_postgres import make
from tests.server.test_pages import enter
from typer.testing import CliRunner

from hushed import Ledger, connect
from hushed.cli import app
from hushed.errors import DamagedLedger, LedgerUnavailable, ParameterError, Refusal
from hushed.ledger._together import reading
from hushed.server import _keys, _rotating
from hushed.server._app import open_desk
from hushed.server._audit import verify_trail
from hushed.server._log import Log
from hushed.server._restoring import restore_server
from hushed.server._rotating import change_key
from hushed.server._setup import check_server, make_server
from hushed.statements import key_id, open_signed, public_key

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """The machine is switched off."""


def certificate(team, key):
    made = team.ask(team.ana, key).json()
    assert made["state"] == "answered"
    found = team.send("GET", f"/v1/requests/{made['id']}/certificate", team.ana)
    assert found.status_code == 200
    return made["id"], found.text


def keys_of(team):
    return team.send("GET", "/v1/keys").json()["keys"]


def send_to(team):
    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=dict(headers), content=body)
        return found.status_code, found.headers, found.content

    return send


def test_old_certificates_are_checked_by_the_old_key(tmp_path, monkeypatch):
    """Twice: listed with the times between which each signed; by file, client and page."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    signed, kids = [], []
    for turn in range(3):
        for team in open_team(folder, tokens):
            signed.append(certificate(team, f"k{turn}"))
            kids.append(key_id(public_key(team.desk.key)))
        if turn < 2:
            done = CliRunner().invoke(
                app, ["serve", "rotate-key", "--folder", str(folder), "--json"]
            )
            told = json.loads(done.output)
            assert (told["former"], len(told["keyid"])) == (kids[-1], 64)
            assert stat.S_IMODE(os.stat(folder / "server.key").st_mode) == 0o600
    assert len(set(kids)) == 3
    for team in open_team(folder, tokens):
        listed = keys_of(team)
        assert [each["kid"] for each in listed] == kids[::-1]
        spans = [(each["valid_from"], each["valid_until"]) for each in listed[::-1]]
        assert spans[-1][1] is None
        assert [each[1] for each in spans[:-1]] == [each[0] for each in spans[1:]]
        assert sorted(spans[0][:1] + tuple(each[0] for each in spans[1:])) == [s[0] for s in spans]
        client = connect("https://stats.example.org", team.ana, send=send_to(team))
        ana = enter(team, "ana")
        for (request, envelope), key in zip(signed, listed[::-1], strict=True):
            file, pub = tmp_path / "signed.json", tmp_path / "old.pub"
            file.write_text(envelope)
            pub.write_text(key["pem"])
            done = CliRunner().invoke(app, ["verify", str(file), "--key", str(pub)])
            assert done.exit_code == 0, done.output
            assert client.answer(request).request == request
            page = ana.get(f"requests/{request}/files/page")
            assert (page.status_code, key["kid"] in page.text) == (200, True)
        with pytest.raises(ParameterError, match="somebody else signed it"):
            open_signed(signed[0][1], listed[0]["pem"].encode())
        with reading(team.desk.ledger) as connection:
            verify_trail(connection)
        told = team.send("GET", "/v1/audit", team.sam).json()["items"]
        changed = [each["about"] for each in told if each["action"] == "changed the key"]
        assert changed == kids[1:]
    facts = " ".join(check_server(folder).facts)
    assert all(each in facts for each in kids)


def test_a_client_that_has_a_key_takes_no_other(tmp_path, monkeypatch):
    """One that was given the old key refuses the new one; given both, it reads all."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for team in open_team(folder, tokens):
        first, _ = certificate(team, "one")
    old = (folder / "server.key.pub").read_bytes()
    change_key(folder)
    new = (folder / "server.key.pub").read_bytes()
    for team in open_team(folder, tokens):
        second, _ = certificate(team, "two")
        more = {"send": send_to(team)}
        pinned = connect("https://stats.example.org", team.ana, key=old, **more)
        assert pinned.answer(first).request == first
        with pytest.raises(ParameterError, match="somebody else signed it"):
            pinned.answer(second)
        asked = pinned.table("stays").bound_contributions(max_rows_per_user=1).count()
        paid = team.charges()
        with pytest.raises(ParameterError, match="nothing was asked"):
            asked.release(epsilon=0.01)
        assert team.charges() == paid
        both = connect("https://stats.example.org", team.ana, key=[new, old], **more)
        assert [both.answer(each).request for each in (first, second)] == [first, second]
        asks = connect("https://stats.example.org", team.ana, **more)
        object.__setattr__(asks, "key", old)  # it was connected before the change
        object.__setattr__(asks, "former", ())
        assert asks.answer(second).request == second
        for wrong in ([], [b"x"], "text", [old, 1]):
            with pytest.raises(ParameterError):
                connect("https://stats.example.org", team.ana, key=wrong, **more)


STEPS = ["replace_file", "write_former", "set_own", "commit", "find_key"]
INSIDE = ["public", "chmod", "private"]


def die_at(monkeypatch, step):
    """Switch the machine off before a step."""

    def die(*_, **__):
        raise Killed

    if step == "commit":
        telling = _rotating.telling

        def tell(ledger):
            class Cut:
                def __enter__(self):
                    self.inner = telling(ledger)
                    return self.inner.__enter__()

                def __exit__(self, *_):
                    return self.inner.__exit__(Killed, Killed(), None)

            return Cut()

        monkeypatch.setattr(_rotating, "telling", tell)
        monkeypatch.setattr(_rotating, "find_key", die)
    elif step in STEPS:
        monkeypatch.setattr(_rotating, step, die)
    elif step == "public":
        monkeypatch.setattr(_keys, "replace_file", die)
    elif step == "chmod":
        monkeypatch.setattr(type(_keys.Path()), "chmod", die)
    else:
        monkeypatch.setattr(_keys, "sync_folder", die)


@pytest.mark.parametrize("step", STEPS + INSIDE)
def test_a_change_that_is_cut_off_leaves_a_server_that_starts(tmp_path, step):
    """Before any step: one key counts, what was signed is checked, and it can be changed again."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    for team in open_team(folder, tokens):
        _, before = certificate(team, "before")
        first = keys_of(team)[0]
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, step)
        with pytest.raises(Killed):
            change_key(folder)
    known = {first["kid"]}
    for turn in range(2):
        for team in open_team(folder, tokens):
            _, after = certificate(team, f"after {turn}")
            listed = keys_of(team)
            assert known <= {each["kid"] for each in listed}
            known |= {each["kid"] for each in listed}
            assert [each["valid_until"] for each in listed].count(None) == 1
            pem = {each["kid"]: each["pem"].encode() for each in listed}
            assert open_signed(before, pem[first["kid"]])
            assert open_signed(after, listed[0]["pem"].encode())
        pub = (folder / "server.key.pub").read_bytes()
        assert key_id(pub) == listed[0]["kid"]
        assert check_server(folder).problems == ()
        if turn == 0:
            change_key(folder)
    assert len(known) == (3 if step in ("find_key", *INSIDE) else 2)


def test_a_key_that_cannot_be_put_in_its_place_is_never_written_over(tmp_path, monkeypatch):
    """The folder lets no file be replaced: the server has its new key, and no second change."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"

    def refuse(_):
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(_keys, "install_key", refuse)
        old, new = change_key(folder)
        with pytest.raises(LedgerUnavailable, match="look at the rights of the folder"):
            change_key(folder)
        for team in open_team(folder, tokens):
            assert [each["kid"] for each in keys_of(team)] == [new, old]
    assert change_key(folder)[0] == new
    for team in open_team(folder, tokens):
        assert [each["kid"] for each in keys_of(team)][1:] == [new, old]


def test_a_new_server_takes_no_keys_of_an_old_one(tmp_path):
    """Whoever clears a folder by half is told: else foreign keys would count as its own."""
    tmp_path.joinpath("server.keys").write_text("[]")
    with pytest.raises(ParameterError, match=r"server\.keys exists"):
        make_server(tmp_path)


def test_a_server_that_runs_keeps_its_key(tmp_path):
    """Its processes would go on signing with the old one."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    before = (folder / "server.key").read_bytes()
    for team in open_team(folder, tokens):
        team.desk.serve_alone()
        with pytest.raises(LedgerUnavailable, match="stop it first"):
            change_key(folder)
        certificate(team, "one")
    assert (folder / "server.key").read_bytes() == before


def test_a_server_that_starts_meanwhile_does_not_sign_with_the_old_key(tmp_path):
    """It reads the key, opens its data sets for a while, and only then keeps others out."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    with closing(open_desk(folder, Log(io.StringIO()))) as desk:
        change_key(folder)
        with pytest.raises(LedgerUnavailable, match="was changed while it started"):
            desk.serve_alone()
    with closing(open_desk(folder, Log(io.StringIO()))) as desk:
        desk.serve_alone()


def test_two_changes_at_once_are_one_after_the_other(tmp_path, monkeypatch):
    """The second one has read the key by then: it changes the one that counts when it is alone."""
    make_folder(tmp_path)
    folder, alone, done = tmp_path / "stats", _rotating.serving_alone, []

    def serving_alone(ledger):
        monkeypatch.setattr(_rotating, "serving_alone", alone)
        done.append(change_key(folder))
        return alone(ledger)

    monkeypatch.setattr(_rotating, "serving_alone", serving_alone)
    done.append(change_key(folder))
    assert done[0][1] == done[1][0]
    facts = " ".join(check_server(folder).facts)
    assert all(each in facts for each in (*done[0], done[1][1]))


def test_an_older_copy_gets_the_new_key_by_the_restoration(tmp_path):
    """It names the old key: no server starts on it, until it was put back by the command."""
    tokens, folder, copy = make_folder(tmp_path), tmp_path / "stats", tmp_path / "copy.db"
    for team in open_team(folder, tokens):
        _, before = certificate(team, "before")
        team.desk.move_mark()
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        ledger.backup(copy)
    old, new = change_key(folder)
    url = folder / "hushed.db"
    url.unlink()
    for part in ("-wal", "-shm"):
        url.with_name(f"hushed.db{part}").unlink(missing_ok=True)
    url.write_bytes(copy.read_bytes())
    with pytest.raises(DamagedLedger, match="hushed serve restore"):
        check_server(folder)
    restore_server(folder, copy, accept_loss=True)
    for team in open_team(folder, tokens):
        assert [each["kid"] for each in keys_of(team)] == [new, old]
        assert open_signed(before, keys_of(team)[1]["pem"].encode())


def test_a_key_from_before_the_change_opens_nothing(tmp_path):
    """The old private key in its old place: somebody put back a folder that is too old."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    old = (folder / "server.key").read_bytes()
    change_key(folder)
    (folder / "server.key").write_bytes(old)
    with pytest.raises(Refusal, match="put the newest one back"):
        check_server(folder)
    (folder / "server.keys").write_text("[]x")
    with pytest.raises(DamagedLedger, match=r"server\.keys"):
        check_server(folder)


def test_it_is_the_same_on_postgres(tmp_path, postgres_url, source):
    """The ledger says which key counts, also where it is a database."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    for team in open_team(folder, tokens):
        _, before = certificate(team, "before")
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, "find_key")
        with pytest.raises(Killed):
            change_key(folder)
    for team in open_team(folder, tokens):
        certificate(team, "after")
        assert len(keys_of(team)) == 2
        assert open_signed(before, keys_of(team)[1]["pem"].encode())
