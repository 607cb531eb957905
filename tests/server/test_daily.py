"""A limit on what one person may have charged in a day: with the charge, and under any clock."""

from __future__ import annotations

import datetime as times
import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.server import test_clocks
from tests.server.conftest import QUERY, make_folder, open_team
from tests.server.test_on_postgres import make
from tests.server.test_pages import enter
from typer.testing import CliRunner

from hushed import Ledger, connect
from hushed.cli import app
from hushed.errors import LedgerUnavailable, Overspent
from hushed.ledger._answers import empty_answer
from hushed.ledger._rows import run
from hushed.ledger._together import reading, writing
from hushed.server._alone import serving_alone
from hushed.server._audit import verify_trail
from hushed.server._people import MACHINE, list_people, take_share
from hushed.server._schema import INDEXES, VERSION, fetch_all, is_older
from hushed.server._setup import check_server, invite
from hushed.server._tokens import Scope

pytestmark = pytest.mark.slow
DAY = 24 * 3600.0
of_the_server = test_clocks.clock


@pytest.fixture
def clock(of_the_server):
    """The clock of the server, from noon on."""
    return test_clocks.begin_at_noon(of_the_server)


@pytest.fixture
def team(tmp_path, clock):
    """A team whose clock stands where a test sets it."""
    yield from open_team(tmp_path / "stats", make_folder(tmp_path))


def limit(team, name, per_day, epsilon=0.6, **more):
    body = {"epsilon": epsilon, "per_day": per_day} | more
    return team.send("PUT", f"/v1/datasets/stays/quotas/{team.person(name)}", team.sam, json=body)


def ask_all(team, token, keys, epsilon=0.1):
    """How each of some questions was taken: 201, or the code of the refusal."""
    found = [team.ask(token, each, epsilon=epsilon) for each in keys]
    return [each.json().get("code", each.status_code) for each in found]


def charged(team, name="ana"):
    """What the ledger says of each day: an account of its own, by the notes of entries."""
    return [
        (each.at[:10], each.guarantee.epsilon)
        for each in team.desk.ledger.entries("stays")
        if name in each.note
    ]


def share_of(team, token):
    (found,) = team.send("GET", "/v1/me", token).json()["shares"]
    return found


def test_a_day_has_its_limit_and_the_next_one_another(team, clock):
    """Three tenths a day of a share of six: tenths are tenths, and the other one is not limited."""
    given = limit(team, "ana", 0.3)
    assert (given.status_code, given.json()["per_day"], given.json()["left_today"]) == (
        200,
        0.3,
        0.3,
    )
    assert ask_all(team, team.ana, "abcd") == [201, 201, 201, "day_exceeded"]
    refused = team.ask(team.ana, "d")
    today = clock.now(times.UTC).date().isoformat()
    assert refused.status_code == 409
    assert refused.json()["detail"] == (
        f"Asked was epsilon 0.1; 0 of 0.3 left of {today} (UTC), used up, or ended by a "
        "restoration of the ledger with a loss; more after that day."
    )
    assert len(charged(team)) == 3
    assert ask_all(team, team.ana, "ab") == [201, 201]  # under a known key it costs nothing
    assert (share_of(team, team.ana)["left_today"], share_of(team, team.ana)["today"]) == (0, today)
    assert share_of(team, team.bo)["per_day"] is None
    assert ask_all(team, team.bo, "abcd") == [201] * 4
    clock.shift = DAY
    assert share_of(team, team.ana)["left_today"] == 0.3
    assert ask_all(team, team.ana, "defg")[:2] == [201, 201]
    assert charged(team)[-1][0] > charged(team)[0][0]


@pytest.mark.parametrize("back", [3600.0, DAY, 40 * DAY], ids=["an hour", "a day", "40 days"])
def test_a_clock_that_is_set_back_fills_nothing_again(team, clock, back):
    """However far, and there and back: the day that was begun goes on."""
    assert limit(team, "ana", 0.2).status_code == 200
    assert ask_all(team, team.ana, "abc") == [201, 201, "day_exceeded"]
    for shift in (-back, 0.0, -2 * back, -back, 0.0):
        clock.shift = shift
        assert ask_all(team, team.ana, ["again"]) == ["day_exceeded"]
    assert len(charged(team)) == 2
    clock.shift = DAY
    assert ask_all(team, team.ana, "de") == [201, 201]


def test_a_clock_that_leaps_ahead_begins_one_day_and_no_more(team, clock):
    """Twenty days on and back: one day more in all. It lasts until it comes, or a steward looks."""
    assert limit(team, "ana", 0.2).status_code == 200
    assert ask_all(team, team.ana, "abc") == [201, 201, "day_exceeded"]
    for _ in range(3):  # the first two are paid once
        clock.shift = 20 * DAY
        assert ask_all(team, team.ana, "def") == [201, 201, "day_exceeded"]
        clock.shift = 0.0
        assert ask_all(team, team.ana, ["x"]) == ["day_exceeded"]
    clock.shift = DAY
    assert ask_all(team, team.ana, ["x"]) == ["day_exceeded"]  # that day is not there yet
    assert share_of(team, team.ana)["today"] > clock.now(times.UTC).date().isoformat()
    assert limit(team, "ana", 0.2).json()["left_today"] == 0.0  # what was spent counts once more
    clock.shift = 2 * DAY
    assert ask_all(team, team.ana, "xy") == [201, 201]
    assert len(charged(team)) == 6


def test_a_limit_outlives_a_share_that_was_taken_away(team):
    """It goes on with the next share, with what was charged today."""
    assert limit(team, "ana", 0.2).status_code == 200
    assert ask_all(team, team.ana, "abc") == [201, 201, "day_exceeded"]
    path, ana = "/v1/datasets/stays/quotas", team.person("ana")
    take_share(team.desk.ledger, ana, "stays", actor=MACHINE)
    assert ask_all(team, team.ana, ["c"]) == ["not_found"]
    given = team.send("PUT", f"{path}/{ana}", team.sam, json={"epsilon": 0.6}).json()
    assert (given["per_day"], given["left_today"], given["spent_before"]) == (0.2, 0.0, 0.2)
    assert ask_all(team, team.ana, ["c"]) == ["day_exceeded"]


def test_a_limit_counts_what_was_charged_before_it_and_outlives_a_share(team, clock):
    """Set at noon it counts the morning; another share on the same day begins no other day."""
    assert ask_all(team, team.ana, "ab") == [201, 201]
    assert limit(team, "ana", 0.3).json()["left_today"] == 0.1
    assert ask_all(team, team.ana, "cd") == [201, "day_exceeded"]
    path = f"/v1/datasets/stays/quotas/{team.person('ana')}"
    wider = team.send("PUT", path, team.sam, json={"epsilon": 0.8}).json()
    assert (wider["left"]["epsilon"], wider["per_day"], wider["left_today"]) == (0.8, 0.3, 0.0)
    assert ask_all(team, team.ana, "d") == ["day_exceeded"]
    same = team.send("PUT", path, team.sam, json={"epsilon": 0.8}).json()
    assert same["per_day"] == 0.3  # a limit that is not named stays
    raised = limit(team, "ana", 0.4, epsilon=0.8).json()
    assert (raised["left_today"], raised["left"]["epsilon"]) == (0.1, 0.8)
    assert ask_all(team, team.ana, "de") == [201, "day_exceeded"]
    told = [each["about"] for each in team.send("GET", "/v1/audit", team.sam).json()["items"]]
    assert [each for each in told if "epsilon 0.4" in each] == ["ana stays epsilon 0.4"]


def test_many_at_once_take_no_more_than_a_day_has(team):
    """Eight questions of a tenth at the same moment, on three tenths: three are paid."""
    assert limit(team, "ana", 0.3).status_code == 200
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: team.ask(team.ana, f"k{i}", wait=0), range(8)))
    codes = [each.json().get("code", each.status_code) for each in found]
    assert (codes.count(202), codes.count("day_exceeded")) == (3, 5)
    assert len(charged(team)) == 3
    with reading(team.desk.ledger) as connection:
        verify_trail(connection)


def test_what_waits_is_counted_when_it_is_approved(tmp_path, clock):
    """On the day of the charge, to who asked; what fits on no day does not wait at all."""
    tokens = make_folder(tmp_path, stays="approve_above = 0.15")
    for team in open_team(tmp_path / "stats", tokens):
        assert limit(team, "ana", 0.3).status_code == 200
        assert ask_all(team, team.ana, ["never"], epsilon=0.35) == ["day_exceeded"]
        waits = [team.ask(team.ana, each, epsilon=0.2).json() for each in "ab"]
        assert [each["state"] for each in waits] == ["pending"] * 2
        approve = [f"/v1/requests/{each['id']}/approve" for each in waits]
        assert team.send("POST", approve[0], team.sam).status_code == 200
        refused = team.send("POST", approve[1], team.sam)
        assert (refused.status_code, refused.json()["code"]) == (409, "day_exceeded")
        assert len(charged(team)) == 1
        # The price says the same: what waits may be asked today, what does not may not.
        asked = [{"query": QUERY, "epsilon": each} for each in (0.2, 0.12, 0.35)]
        path = "/v1/datasets/stays/quote"
        prices = [team.send("POST", path, team.ana, json=each).json() for each in asked]
        assert [each["left_today"] for each in prices] == [0.1] * 3
        assert [each["fits"] for each in prices] == [True, False, False]
        clock.shift = DAY
        assert team.send("POST", approve[1], team.sam).status_code == 200
        assert len(charged(team)) == 2


def test_prices_pages_and_the_client_tell_it(team, monkeypatch, tmp_path):
    """A price that does not fit the day says so; page and client show what is left."""
    assert limit(team, "ana", 0.25).status_code == 200
    assert ask_all(team, team.ana, "ab") == [201, 201]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=dict(headers), content=body)
        return found.status_code, found.headers, found.content

    client = connect("https://stats.example.org", team.ana, send=send)
    (dataset,) = client.datasets()
    assert (dataset["share"]["per_day"], dataset["share"]["left_today"]) == (0.25, 0.05)
    table = client.table("stays").bound_contributions(max_rows_per_user=1).count()
    for _ in range(2):  # a price that nobody knew, and one that was kept
        quote = table.quote(epsilon=0.1)
        assert (quote.fits, quote.left_today) == (False, 0.05)
        assert "does not fit into what is left of today" in str(quote)
        assert re.search(r"epsilon 0\.1 .*0\.05 of 0\.25 left of .*UTC", quote.short)
    assert table.quote(epsilon=0.05).fits
    with pytest.raises(Overspent, match=r"limit for each day.*0\.05 of 0\.25 left"):
        table.release(epsilon=0.1)
    sam = enter(team, "sam", "steward")
    told = "each day 0.05 of 0.25 left of "
    assert told in sam.get("people").text
    assert "epsilon 0.05 of 0.25 left of " in sam.get("datasets/stays").text
    assert "epsilon 0.05 of 0.25 left of " in enter(team, "ana").get("datasets").text
    shown = CliRunner().invoke(app, ["serve", "people", "--folder", str(team.folder)])
    assert told in shown.output


def test_a_limit_is_given_at_the_machine_and_on_the_page(team):
    """`--per-day` beside its share; alone, or no number, it is refused and nothing changes."""
    run = ["serve", "invite", "ana", "--folder", str(team.folder), "--json"]
    done = CliRunner().invoke(app, [*run, "--share", "stays=0.6", "--per-day", "stays=0.3"])
    assert json.loads(done.output)["shares"][0]["per_day"] == 0.3
    for wrong in (["stays=0.3"], ["stays=much"], ["stays=0"]):
        more = ["--per-day", *wrong] + ([] if wrong == ["stays=0.3"] else ["--share", "stays=0.6"])
        refused = CliRunner().invoke(app, [*run, *more])
        assert refused.exit_code not in (0, 3), refused.output
    again = CliRunner().invoke(app, [*run, "--share", "stays=0.6"])
    assert json.loads(again.output)["shares"][0]["per_day"] == 0.3
    assert share_of(team, team.ana)["per_day"] == 0.3
    sam = enter(team, "sam", "steward")
    given = {"person": team.person("ana"), "epsilon": "0.6", "per_day": "0.2"}
    assert sam.post("datasets/stays/shares", given).status_code == 200
    assert share_of(team, team.ana)["per_day"] == 0.2
    wrong = sam.post("datasets/stays/shares", given | {"per_day": "-1"})
    assert (wrong.status_code, share_of(team, team.ana)["per_day"]) == (422, 0.2)


def test_the_day_of_a_loss_is_over(tmp_path, clock):
    """What was charged today may be lost with the ledger: nobody has more of that day."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    for team in open_team(folder, tokens):
        assert limit(team, "ana", 0.2).status_code == 200
        team.desk.move_mark()
        team.desk.ledger.backup(copy)
        assert ask_all(team, team.ana, "ab") == [201, 201]
    words = ["serve", "restore", str(copy), "--accept-loss", "--folder", str(folder)]
    said = " ".join(CliRunner().invoke(app, words).stderr.split())
    assert "events or charges are lost" in said
    assert "has anything left of today (UTC)" in said
    assert "shares with such a limit: 1" in said
    fresh = invite(folder, "ana", "analyst", [], days=30, scope=Scope())
    for team in open_team(folder, tokens):
        assert ask_all(team, fresh, "cd") == ["day_exceeded"] * 2
        clock.shift = DAY
        assert ask_all(team, fresh, "cd") == [201, 201]


def make_older(address, version="3"):
    """Make the tables of a server those of an earlier version."""
    with Ledger(address, create=False) as ledger, writing(ledger) as connection:
        schema = "" if address.startswith("sqlite") else "@."
        for each in INDEXES if version != "5" else ():
            run(connection, f"DROP INDEX {schema}{each.split()[2]}", {})
        run(
            connection,
            f"UPDATE @.hushed_s_state SET value = '{version}' WHERE name = 'version'",
            {},
        )
        run(connection, "ALTER TABLE @.hushed_s_people DROP COLUMN kept", {})
        run(connection, "ALTER TABLE @.hushed_s_requests DROP COLUMN size", {})
        if version != "3":
            return
        for name in ("grants per_day", "grants day", "grants day_spent", "requests deleted_at"):
            table, column = name.split()
            run(connection, f"ALTER TABLE @.hushed_s_{table} DROP COLUMN {column}", {})
        run(connection, "ALTER TABLE @.hushed_s_requests DROP COLUMN answer_sha256", {})
        gone = "DROP TRIGGER hushed_emptied ON @.hushed_answers"
        run(connection, "DROP TRIGGER hushed_answers_update", {}, gone)
        guard = "BEFORE UPDATE ON {} {}"
        here = guard.format("hushed_answers", "BEGIN SELECT RAISE(ABORT, 'append-only'); END")
        there = guard.format("@.hushed_answers", "FOR EACH ROW EXECUTE FUNCTION @.hushed_refuse()")
        there = "DROP TRIGGER hushed_keep ON @.hushed_answers; CREATE TRIGGER hushed_keep " + there
        run(connection, f"CREATE TRIGGER hushed_answers_update {here}", {}, there)


def ask_before(folder, tokens):
    """Ask something that is kept; the people as they are then."""
    for team in open_team(folder, tokens):
        assert team.ask(team.bo, "before", epsilon=0.05, note="für später").status_code == 201
        found = list_people(team.desk.ledger)
    assert {each["name"]: each["kept"] > 0 for each in found}["bo"]
    return found


def check_upgraded(folder, tokens, before):
    """What was there is as it was; limits and deletions work, and nothing else is let in."""
    assert check_server(folder).problems == ()
    for team in open_team(folder, tokens):
        assert list_people(team.desk.ledger) == before
        assert ask_all(team, team.ana, "a") == [201]
        assert limit(team, "ana", 0.1).json()["left_today"] == 0.0
        with writing(team.desk.ledger) as connection:
            found = fetch_all(
                connection, "SELECT value FROM @.hushed_s_state WHERE name = 'version'"
            )
            assert empty_answer(connection, "stays", 1)
        assert found == [{"value": VERSION}]
        with (
            pytest.raises(Exception, match="append-only"),
            writing(team.desk.ledger) as connection,
        ):
            run(connection, "UPDATE @.hushed_answers SET body = 'x'", {})


@pytest.mark.parametrize("version", ["3", "4", "5"])
def test_a_server_of_the_version_before_goes_on(tmp_path, version):
    """Its tables get what is new, once."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    before = ask_before(folder, tokens)
    make_older(f"sqlite:///{folder}/hushed.db", version)
    check_upgraded(folder, tokens, before)


def test_a_server_of_the_version_before_that_is_at_work_keeps_its_tables(tmp_path):
    """It knows no limits by the day, and `/readyz` would say that it cannot read its tables."""
    folder = tmp_path / "stats"
    make_folder(tmp_path)
    address = f"sqlite:///{folder}/hushed.db"
    make_older(address)
    with Ledger(address) as ledger, serving_alone(ledger):
        with pytest.raises(LedgerUnavailable, match="stop it first"):
            check_server(folder)
        with reading(ledger) as connection:
            assert is_older(connection)
    assert check_server(folder).problems == ()


@pytest.mark.parametrize("version", ["3", "4", "5"])
def test_a_server_of_the_version_before_goes_on_on_postgres(
    tmp_path, postgres_url, source, version
):
    """The same, in the database."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    before = ask_before(folder, tokens)
    make_older(postgres_url, version)
    check_upgraded(folder, tokens, before)


def test_it_is_the_same_on_postgres(tmp_path, postgres_url, source, clock):
    """Races and days, where budgets are locked one by one."""
    folder = tmp_path / "stats"
    for team in open_team(folder, make(folder, postgres_url, source)):
        test_many_at_once_take_no_more_than_a_day_has(team)
        clock.shift = -DAY
        assert ask_all(team, team.ana, ["x"]) == ["day_exceeded"]
        clock.shift = DAY
        assert ask_all(team, team.ana, ["x"]) == [201]
