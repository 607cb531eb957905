"""Analysts on PostgreSQL append, and change, read and answer nothing that is of others."""

import json
from dataclasses import replace

import psycopg
import pyarrow as pa
import pytest
from sqlalchemy import make_url
from sqlalchemy.event import listen
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.errors import (
    BudgetExists,
    DamagedLedger,
    HushedError,
    KeyInUse,
    LedgerUnavailable,
    NotFound,
    Overspent,
    ParameterError,
)
from hushed.ledger._entries import digest, write_entry

G = hs.Guarantee
# Texts that read as a number below 0 or as none; `float.fromhex` skips blanks.
NO_AMOUNTS = (" -0x1.0p-2", "\t-0x1.0p-2", "\n-1", "-inf", "nan", " nan", "junk", "", None, 1, -1)
TABLES = ("migrations", "budgets", "entries", "heads", "answers")


@pytest.fixture
def team(postgres, postgres_url):
    """A ledger with a budget; two analysts and an auditor, as the printed SQL makes them."""
    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", G(epsilon=1.0, delta=1e-6))
    sql = CliRunner().invoke(app, ["ledger", "roles"]).stdout
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS ada, bob, eve")  # of the server, not of the database
        owner.execute(sql)
        for name, role in (("ada", "analyst"), ("bob", "analyst"), ("eve", "auditor")):
            owner.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'")
            owner.execute(f"GRANT hushed_{role} TO {name}")
    found = {
        name: make_url(postgres_url)
        .set(username=name, password="secret")
        .render_as_string(hide_password=False)
        for name in ("ada", "bob", "eve")
    }
    yield found | {"owner": postgres_url}
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        for role in ("ada", "bob", "eve", "hushed_analyst", "hushed_auditor"):
            owner.execute(f"DROP OWNED BY {role}")
            owner.execute(f"DROP ROLE {role}")


@pytest.mark.slow
def test_analysts_share_a_budget_and_see_their_own(team):
    """Together they never overspend; notes, keys, questions and answers stay with their authors."""
    with hs.Ledger(team["ada"]) as ada, hs.Ledger(team["bob"]) as bob:
        mine = ada.charge("b", G(epsilon=0.25), "salaries", key="monday", question="q")
        assert ada.keep_answer("b", mine, "7.5") == "7.5"
        bob.charge("b", G(epsilon=0.5), "ages")
        assert ada.balance("b") == bob.balance("b")
        with pytest.raises(Overspent):
            ada.charge("b", G(epsilon=0.5))
        seen = bob.entries("b")
        assert [(e.note, e.key, e.question) for e in seen] == [("", None, ""), ("ages", None, "")]
        assert [e.guarantee.epsilon for e in seen] == [0.25, 0.5]
        assert [e.note for e in ada.entries("b")] == ["salaries", ""]
        assert bob.answer("b", 1) is bob.answer("b", "monday") is None
        assert ada.answer("b", "monday") == "7.5"
        assert "salaries" not in bob.export() + bob.export("b")
        assert bob.verify("b") == ada.verify("b")
        again = ada.charge("b", G(epsilon=0.25), key="monday", question="q")
        assert again.number == 1
        with pytest.raises(LedgerUnavailable, match=r"take another key. Nothing was charged"):
            bob.charge("b", G(epsilon=0.25), key="monday", question="q")
        assert bob.charge("b", G(epsilon=0.25), key="tuesday").number == 3
    with hs.Ledger(team["owner"]) as owner, hs.Ledger(team["eve"]) as eve:
        for each in (owner, eve):
            assert [e.note for e in each.entries("b")] == ["salaries", "ages", ""]
            assert each.answer("b", 1) == "7.5"
            assert each.verify("b").startswith("3:")
        with pytest.raises(HushedError, match="permission denied"):
            eve.charge("b", G(epsilon=0.01))


def test_no_guess_of_the_words_of_others_is_confirmed_by_a_digest(team):
    """Who knows all else of an entry, and guesses right, finds another digest than it has."""
    with hs.Ledger(team["ada"]) as ada:
        ada.charge("b", G(epsilon=0.25), "salaries", key="monday", question="q")
        (entry,) = ada.entries("b")
        assert (entry.note, entry.key, entry.question) == ("salaries", "monday", "q")
        (told,) = json.loads(ada.export("b"))["budgets"][0]["entries"]
    with psycopg.connect(team["bob"]) as bob:
        found = "SELECT body, digest FROM hushed_seen('b', 0, 9)"
        ((body, link),) = bob.execute(found).fetchall()
        ((before,),) = bob.execute("SELECT digest FROM hushed_budgets").fetchall()
    guess = json.loads(body) | {"note": "salaries", "key": "monday", "question": "q"}
    text = {"sort_keys": True, "separators": (",", ":")}
    assert digest(before, json.dumps(guess, **text)) != link
    del told["digest"]  # what is left is the entry as it lies there, which its author reads
    assert digest(before, json.dumps(told, **text)) == link
    assert told["question"] not in body
    assert told["question"].startswith("q")
    with hs.Ledger(team["ada"]) as ada:
        assert ada.charge("b", G(epsilon=0.25), key="monday", question="q") == entry


def test_a_budget_that_its_owner_retired_takes_no_charge_of_an_analyst(team):
    """What an entry says in words is shown to its author alone: that it ends a budget, to all."""
    with hs.Ledger(team["owner"]) as owner, hs.Ledger(team["ada"]) as ada:
        assert ada.balance("b").epsilon_left > 0  # what it remembers is of before
        owner.retire_budget("b", "the limit was wrong")
        with hs.Ledger(team["bob"]) as bob:
            for handle in (ada, bob, owner):
                found = handle.balance("b")
                assert (found.retired, found.epsilon_left, found.entries) == (True, 0, 1)
                assert (found.used, found.spent.epsilon) == (0, 0)
                with pytest.raises(Overspent, match="retired"):
                    handle.charge("b", G(epsilon=0.1))
                with pytest.raises(Overspent, match="retired"):
                    handle.quote("b", G(epsilon=0.1))
                assert handle.verify("b").startswith("1:")


@pytest.mark.slow
def test_a_release_by_an_analyst_is_kept(team):
    """The whole way: charged, stored, told again."""
    rows = [0.25, 0.5, 0.75]
    s = hs.proven_sensitivity(1 / 3, argument="mean of three values in [0, 1]")
    with hs.Ledger(team["ada"]) as ada:
        told = [
            hs.release(
                lambda r: sum(r) / 3, rows, hs.Laplace(s, epsilon=0.5), ada, budget="b", key="k"
            )
            for _ in range(2)
        ]
    assert told[0] == told[1]


@pytest.mark.slow
@pytest.mark.parametrize("who", ["ada", "eve"])
def test_the_server_itself_refuses_the_rest(team, who):
    """No table is changed, emptied or dropped, no guard taken off, no budget opened."""
    with hs.Ledger(team["owner"]) as owner:
        owner.keep_answer("b", owner.charge("b", G(epsilon=0.25), "salaries"), "7.5")
    statements = [
        f"{verb} hushed_{table}{rest}"
        for table in TABLES
        for verb, rest in (("DELETE FROM", ""), ("TRUNCATE", " CASCADE"), ("DROP TABLE", ""))
    ]
    statements += [
        "UPDATE hushed_entries SET body = ''",
        "UPDATE hushed_heads SET entries = 0",
        "INSERT INTO hushed_budgets VALUES ('c', '', '')",
        "INSERT INTO hushed_entries VALUES ('b', 2, '{}', '')",
        "INSERT INTO hushed_answers VALUES ('b', 1, 'x', '')",
        "ALTER TABLE hushed_entries DISABLE TRIGGER ALL",
        "CREATE OR REPLACE FUNCTION hushed_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN OLD; END $$",
        "SET ROLE hushed",
    ]
    statements += ["SELECT * FROM hushed_entries", "TABLE hushed_answers"] if who == "ada" else []
    with psycopg.connect(team[who], autocommit=True) as login:
        for each in statements:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                login.execute(each)
    with hs.Ledger(team[who]) as book, pytest.raises(HushedError):
        book.open_budget("c", G(epsilon=1.0))
    with hs.Ledger(team["owner"]) as owner:
        assert owner.verify("b").startswith("1:")


def forged(book, **changes):
    """Next entry of a chain as a forger would write it: text and link that fit together."""
    last = book.entries("b")[-1]
    entry = replace(last, number=last.number + 1, digest="", **changes)
    body = write_entry(entry)
    return entry.number, body, digest(last.digest, body)


@pytest.mark.slow
def test_functions_take_the_next_entry_and_nothing_else(team):
    """Texts and links that do not fit, costs below nothing, places of others."""
    with hs.Ledger(team["ada"]) as ada:
        mine = ada.charge("b", G(epsilon=0.25))
        number, body, link = forged(ada)
        with psycopg.connect(team["ada"], autocommit=True) as login:
            refused = [
                ("b", number + 1, body, link),
                ("b", 1, body, link),
                ("c", number, body, link),
                ("b", number, body, "0" * 64),
                ("b", number, body.replace("0x1.0", "-0x1.0"), link),
            ]
            record = json.loads(body)
            for changed in (
                {"costs": []},
                *({"costs": [[each, "0x0.0p+0"]] * len(record["costs"])} for each in NO_AMOUNTS),
                *({"costs": [["0x0.0p+0", each]] * len(record["costs"])} for each in NO_AMOUNTS),
                *(
                    {"guarantee": record["guarantee"] | {name: each}}
                    for name in ("epsilon", "delta", "gamma")
                    for each in NO_AMOUNTS
                ),
                *(
                    {"guarantee": record["guarantee"] | {"estimates": [["x", each]]}}
                    for each in NO_AMOUNTS
                ),
                {"costs": [["0x0.0p+0"] * 3] * len(record["costs"])},
                {"guarantee": {}},
                {"key": ["a"]},
                {"costs": [["-0x1.0p+0", "0x0.0p+0"]] * len(record["costs"])},
                {"budget": "c"},
                {"number": 7},
                {"kind": "budget"},
            ):
                text = json.dumps(record | changed, sort_keys=True, separators=(",", ":"))
                refused.append(("b", number, text, digest(mine.digest, text)))
            for each in refused:
                with pytest.raises(psycopg.errors.RaiseException, match="nothing else"):
                    login.execute("SELECT hushed_append(%s, %s, %s, %s)", each)
        assert ada.balance("b").entries == 1


def nonsense(record):
    """Texts that no spender writes; each stopped others once, or could."""
    promise, costs = record["guarantee"], len(record["costs"])
    for name in record:
        if name not in ("key", "law", "question"):
            yield {each: record[each] for each in record if each != name}
        for value in (None, 1, [], {}, True, "\x1b[2J"):
            if not (name in ("note", "question", "key") and isinstance(value, str)):
                yield record | {name: value}
    for name in promise:
        rest = {each: promise[each] for each in promise if each != name}
        yield record | {"guarantee": rest}
        for value in (None, 1, {}, "foo", "0x1.0p+9999", "0x1.0p+1024"):
            yield record | {"guarantee": promise | {name: value}}
    for value in ([1, "0x1.0p-3"], [["x"], "0x1.0p-3"], ["x", "0x1.0p-0"]):
        yield record | {"guarantee": promise | {"estimates": [value]}}
    twice = [["x", "0x1.0p-5"], ["x", "0x1.0p-5"]]
    yield record | {"guarantee": promise | {"estimates": twice}}
    for pair in (["0x1.0p+9999", "0x0.0p+0"], ["0x1.0p-5", "inf"]):
        yield record | {"costs": [pair] * costs}
    yield record | {"law": []}
    yield record | {"law": [{"law": "laplace", "bound": "0x1.0p+9999", "count": 1}]}
    yield record | {"law": [{"law": "laplace", "bound": "0x1.0p+0", "count": 0}]}
    yield record | {"more": 1}


@pytest.mark.slow
def test_no_forged_entry_stops_the_others(team):
    """A text of another form than a spender's is refused, even if its link and costs are right."""
    with hs.Ledger(team["ada"]) as ada, hs.Ledger(team["bob"]) as bob:
        law = hs.privacy_loss.laplace(0.25)
        mine = ada.charge("b", G(epsilon=0.25), "n", loss=law, key="k", question="q")
        number, body, _ = forged(ada)
        record = json.loads(body)
        texts = [json.dumps(r, sort_keys=True, separators=(",", ":")) for r in nonsense(record)]
        texts += [
            body[:-1] + ',"note":""}',
            body.replace('"n"', "[" * 5000 + "]" * 5000)[:-1] + ',"note":""}',
            body.replace('"number":2', '"number":2.0'),
            body.replace(",", ", "),
            body + "\n",
            body.replace('"n"', '"' + "n" * 2_000_000 + '"'),
        ]
        assert body not in texts
        with psycopg.connect(team["ada"], autocommit=True) as login:
            for text in texts:
                with pytest.raises(psycopg.errors.Error, match=r"nothing else|type json|limit"):
                    login.execute(
                        "SELECT hushed_append('b', %s, %s, %s)",
                        (number, text, digest(mine.digest, text)),
                    )
        assert bob.charge("b", G(epsilon=0.25)).number == number


NO_LAWS = {
    "nothing": {"losses": ["0x1.0p-3"], "masses": ["0x1.0p-500"]},
    "gain": {"losses": ["-0x1.0p+9"], "masses": ["0x1.0p+0"]},
    "end": {"losses": ["0x1.0p-3"], "masses": ["0x1.0p+0"], "end": "-0x1.0p+9"},
    "lengths": {"losses": ["0x1.0p-3"], "masses": ["0x1.0p-1", "0x1.0p-1"]},
    "infinite": {"losses": ["inf"], "masses": ["0x1.0p+0"]},
    "none": {"losses": [], "masses": []},
    "many": {
        "losses": [(i * 2.0**-40).hex() for i in range(8192)],
        "masses": ["0x1.0p-13"] * 8192,
        "infinite": "0x0.0p+0",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NO_LAWS)
def test_a_forged_law_costs_its_promise(team, name):
    """Point masses of no two distributions: the guarantee counts, and others pay what they did."""
    with hs.Ledger(team["owner"]) as owner:
        owner.open_budget("laws", G(epsilon=1.0, delta=1e-6), method="pld")
    with hs.Ledger(team["ada"]) as ada, hs.Ledger(team["bob"]) as bob:
        mine = ada.charge("laws", G(epsilon=0.25), loss=hs.privacy_loss.laplace(0.25))
        record = json.loads(write_entry(replace(mine, number=2)))
        rest = {"law": "finite", "count": 1, "end": None, "infinite": "0x0.0p+0"}
        record["law"] = [rest | {"concentrated": "inf"} | NO_LAWS[name]]
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        with psycopg.connect(team["ada"], autocommit=True) as login:
            login.execute(
                "SELECT hushed_append('laws', 2, %s, %s)", (text, digest(mine.digest, text))
            )
        assert bob.charge("laws", G(epsilon=0.5)).number == 3
        assert bob.balance("laws").spent.epsilon > 0.999
        with pytest.raises(Overspent):
            bob.charge("laws", G(epsilon=0.01))


@pytest.mark.slow
def test_every_kind_of_charge_is_taken(team):
    """Promises and laws of all kinds, odd letters, subnormal and infinite numbers."""
    finite = hs.privacy_loss.pair([0.5, 0.25, 0.25], [0.25, 0.25, 0.5])
    whole = hs.privacy_loss.gaussian(0.01).compose(3)
    charges = [
        (G(epsilon=5e-324, delta=5e-324), None),
        (G(epsilon=0.01), hs.privacy_loss.laplace(0.01)),
        (G(epsilon=whole.epsilon(1e-9), delta=1e-9), whole),
        (G(epsilon=0.7), finite),
        (G(epsilon=0.01, gamma=0.01, estimates=(("ab.cd", 0.01),), marginal=True), None),
        (G(epsilon=0.01, gamma=0.01, estimates=(('é "日本" \\\n', 0.01),)), None),
    ]
    with hs.Ledger(team["owner"]) as owner:
        limit = G(epsilon=9.0, delta=1e-6, gamma=0.5, protect="record", data_dependent=True)
        owner.open_budget("wide", limit)
    with hs.Ledger(team["ada"]) as ada:
        for i, (promise, loss) in enumerate(charges):
            note = f'é\u2028\U0001f600 \\ " / {i}\t'
            entry = ada.charge("wide", promise, note, loss=loss, key=f'k"\\é{i}', question=note)
            assert ada.entries("wide")[-1] == replace(entry, terms="")
        assert ada.balance("wide").entries == len(charges)


@pytest.mark.slow
def test_answers_are_stored_for_ones_own_entries_alone(team):
    """Neither through the library nor by calling the function."""
    with hs.Ledger(team["ada"]) as ada, hs.Ledger(team["bob"]) as bob:
        entry = ada.charge("b", G(epsilon=0.25))
        with pytest.raises(HushedError):
            bob.keep_answer("b", entry, "forged")
        with psycopg.connect(team["bob"], autocommit=True) as login:
            for place in (1, 2):
                with pytest.raises(psycopg.errors.RaiseException, match="one's own"):
                    login.execute(
                        "SELECT hushed_keep('b', %s, 'x', %s)", (place, digest(entry.digest, "x"))
                    )
        assert ada.keep_answer("b", entry, "true") == "true"
        assert ada.keep_answer("b", entry, "other") == "true"


def test_a_table_of_ones_own_does_not_stand_in(team):
    """A temporary table of the same name changes nothing for a function with the owner's rights."""
    with psycopg.connect(team["ada"], autocommit=True) as login:
        login.execute("CREATE TEMP TABLE hushed_heads (budget TEXT, entries INT, digest TEXT)")
        login.execute("INSERT INTO pg_temp.hushed_heads VALUES ('b', 99, 'x')")
        login.execute("SET search_path = pg_temp, public")
        found = login.execute("SELECT entries FROM hushed_head('b')").fetchone()
    assert found == (0,)


def test_strangers_have_no_rights(team, postgres):
    """A login without a role can call nothing: functions are taken from the public."""
    with psycopg.connect(team["owner"], autocommit=True) as owner:
        owner.execute("REVOKE hushed_analyst FROM bob")
    with psycopg.connect(team["bob"], autocommit=True) as login:
        for each in ("hushed_seen('b', 0, 9)", "hushed_head('b')", "hushed_answered('b')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                login.execute(f"SELECT * FROM {each}")
    with pytest.raises((LedgerUnavailable, NotFound)):
        hs.Ledger(team["bob"])


@pytest.mark.slow
def test_a_budget_that_exists_is_said_to_exist_to_analysts_too(team):
    """Who opens it if there is none gets the same answer, with or without the right to open one."""
    for who in ("ada", "owner"):
        with hs.Ledger(team[who]) as book, pytest.raises(BudgetExists):
            book.open_budget("b", G(epsilon=1.0))
    with hs.Ledger(team["ada"]) as book, pytest.raises(LedgerUnavailable, match="permission"):
        book.open_budget("new", G(epsilon=1.0))


def test_letters_that_the_database_has_not(postgres):
    """A database in another encoding: the message says what to do about them."""
    name = postgres.create_database()
    postgres.run(f"DROP DATABASE {name}")
    postgres.run(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    with hs.Ledger(postgres.url(name)) as book:
        book.open_budget("Ärzte", G(epsilon=1.0))
        with pytest.raises(LedgerUnavailable, match="take other letters"):
            book.charge("Ärzte", G(epsilon=0.25), "日本")
        assert book.charge("Ärzte", G(epsilon=0.25), "für alle").number == 1


def test_a_missing_right_is_told_with_who_can_grant_it(team):
    """An auditor who charges is told which right is missing, and not to try again."""
    with (
        hs.Ledger(team["eve"]) as eve,
        pytest.raises(LedgerUnavailable, match="its owner can grant") as refused,
    ):
        eve.charge("b", G(epsilon=0.25))
    assert "try again" not in str(refused.value)


@pytest.mark.slow
def test_pages_of_the_workbench_say_who_cannot_pay(team, tmp_path):
    """An auditor lacks a right, and a server that takes no changes is said to be one."""
    from starlette.testclient import TestClient

    from hushed.workbench import create_app

    def find_banner(who):
        guard = create_app(tmp_path, port=8000, ledger=team[who])
        with TestClient(guard, base_url="http://127.0.0.1:8000") as client:
            page = client.get(guard.address).text
        assert "The ledger cannot be used" not in page
        return page.partition('id="ledger-lock"')[2][:400]

    assert "its owner can grant" in find_banner("eve")
    assert find_banner("ada") == ""
    with psycopg.connect(team["owner"], autocommit=True) as owner:
        owner.execute("ALTER ROLE ada SET default_transaction_read_only = on")
    assert "it takes no changes" in find_banner("ada")
    assert find_banner("owner") == ""


def test_charges_reach_the_disk_behind_a_pooler_that_forgets(postgres, postgres_url):
    """What was set for a session is gone with it; a charge waits for the disk still."""
    database = make_url(postgres_url).database
    postgres.run(f"ALTER DATABASE {database} SET synchronous_commit = off")
    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", G(epsilon=1.0))
    watched = (
        "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO public.seen VALUES (TG_TABLE_NAME, current_setting('synchronous_commit')); "
        "RETURN NULL; END $$"
    )
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("CREATE TABLE seen (name TEXT, value TEXT)")
        owner.execute(watched)
        for table in ("entries", "answers"):
            owner.execute(
                f"CREATE CONSTRAINT TRIGGER look AFTER INSERT ON hushed_{table} "
                "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION look()"
            )
    with hs.Ledger(postgres_url) as book:
        store = book._store
        listen(store.engine(), "begin", lambda found: found.exec_driver_sql("RESET ALL"))
        book.keep_answer("b", book.charge("b", G(epsilon=0.25)), "1")
    with psycopg.connect(postgres_url) as owner:
        found = owner.execute("SELECT DISTINCT name, value FROM seen ORDER BY name").fetchall()
    assert found == [("hushed_answers", "on"), ("hushed_entries", "on")]


def test_a_pooled_session_is_given_back_with_the_search_path_it_had(postgres_url):
    """Others may be given it next, and another ledger, which would look for its schema there."""
    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", G(epsilon=1.0))
        book.charge("b", G(epsilon=0.25))
        with book._store.engine().raw_connection().driver_connection as driver:
            assert driver.execute("SHOW search_path").fetchone() == ('"$user", public',)


def test_a_second_connection_reads_as_of_one_moment_too(postgres_url):
    """Nothing was asked on it before that would keep it from being told so."""
    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", G(epsilon=1.0))
        with book._store.reading() as one, book._store.reading() as other:
            for each in (one, other):
                found = each.exec_driver_sql("SHOW transaction_isolation").scalar()
                assert found == "repeatable read"


def test_no_rights_are_granted_where_everybody_may_create_functions(postgres_url):
    """As in the schema public before PostgreSQL 15: one's own operator would run as the owner."""
    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", G(epsilon=1.0))
    sql = CliRunner().invoke(app, ["ledger", "roles"]).stdout
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
        for kind in ("NAME", "TEXT"):  # somebody who may make functions answers that nobody may
            owner.execute(
                f"CREATE FUNCTION has_schema_privilege(TEXT, {kind}, TEXT) RETURNS bool "
                "LANGUAGE sql AS 'SELECT false'"
            )
        with pytest.raises(psycopg.errors.RaiseException, match="REVOKE CREATE ON SCHEMA public"):
            owner.execute(sql)
        owner.execute("ROLLBACK")
        found = owner.execute("SELECT 1 FROM pg_roles WHERE rolname = 'hushed_analyst'").fetchone()
    assert found is None


@pytest.mark.parametrize("kind", ["TABLES", "FUNCTIONS"])
def test_no_rights_are_granted_where_others_have_some(postgres_url, kind):
    """By default privileges an analyst read the notes of others, and could put triggers there."""
    sql = CliRunner().invoke(app, ["ledger", "roles"]).stdout
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("CREATE ROLE staff")
        try:
            owner.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON {kind} TO staff")
            with hs.Ledger(postgres_url) as book:
                book.open_budget("b", G(epsilon=1.0))
            with pytest.raises(psycopg.errors.RaiseException, match=r"hushed_answer.* \(staff\)"):
                owner.execute(sql)
            owner.execute("ROLLBACK")
            owner.execute(f"REVOKE ALL ON ALL {kind} IN SCHEMA public FROM staff")
            owner.execute(sql)
        finally:
            for role in ("staff", "hushed_analyst", "hushed_auditor"):
                owner.execute(f"DROP OWNED BY {role}")
                owner.execute(f"DROP ROLE {role}")


def test_no_rights_are_granted_where_others_have_some_on_a_column(postgres_url):
    """They are not among the rights on the table; and what this SQL gave is not to be revoked."""
    sql = CliRunner().invoke(app, ["ledger", "roles"]).stdout
    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", G(epsilon=1.0))
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("CREATE ROLE staff")
        try:
            owner.execute("GRANT SELECT (body) ON hushed_entries TO staff")
            with pytest.raises(psycopg.errors.RaiseException, match=r"hushed_entries \(staff\)"):
                owner.execute(sql)
            owner.execute("ROLLBACK")
            owner.execute("REVOKE ALL ON hushed_entries FROM staff")
            owner.execute(sql)
            with pytest.raises(psycopg.errors.DuplicateObject, match="hushed_analyst"):
                owner.execute(sql)
            owner.execute("ROLLBACK")
        finally:
            for role in ("staff", "hushed_analyst", "hushed_auditor"):
                owner.execute(f"DROP OWNED BY {role}")
                owner.execute(f"DROP ROLE {role}")


def test_a_ledger_in_an_earlier_schema_does_not_stand_in(postgres):
    """Whoever may create there took the charges of others, by functions that ran as they."""
    database = postgres.create_database()
    url = postgres.url(database)
    named = {each: f"{url}?options=-csearch_path%3D{each}" for each in ("public", "late")}
    postgres.run(
        "CREATE SCHEMA late",
        f"ALTER DATABASE {database} SET search_path = public, late",
        database=database,
    )
    with hs.Ledger(named["late"]) as book:
        book.open_budget("b", G(epsilon=1.0))
        book.charge("b", G(epsilon=0.9))
    with hs.Ledger(url) as book:
        assert book.balance("b").entries == 1
    with hs.Ledger(named["public"]) as other:
        other.open_budget("b", G(epsilon=1.0))
    with pytest.raises(ParameterError, match=r"'public', 'late'.*-csearch_path%3D"):
        hs.Ledger(url)
    with hs.Ledger(named["late"]) as book:
        assert book.balance("b").entries == 1


# Where PostgreSQL would prefer them to its own functions, or to those of a ledger.
FITTING = (
    "FUNCTION to_jsonb(x INTEGER) RETURNS jsonb",
    "FUNCTION hushed_append(a TEXT, b SMALLINT, c TEXT, d TEXT) RETURNS jsonb",
    "FUNCTION hushed_seen(a TEXT, b SMALLINT, c SMALLINT) RETURNS jsonb",
    "FUNCTION hushed_keep(a TEXT, b SMALLINT, c TEXT, d TEXT) RETURNS jsonb",
    "FUNCTION hushed_answer(a TEXT, b SMALLINT) RETURNS jsonb",
    "FUNCTION eq(a OID, b REGTYPE) RETURNS bool",
    "FUNCTION eq(a TEXT, b VARCHAR) RETURNS bool",
    "FUNCTION more(a INTEGER, b SMALLINT) RETURNS bool",
    "OPERATOR = (LEFTARG = OID, RIGHTARG = REGTYPE, FUNCTION = eq)",
    "OPERATOR = (LEFTARG = TEXT, RIGHTARG = VARCHAR, FUNCTION = eq)",
    "OPERATOR > (LEFTARG = INTEGER, RIGHTARG = SMALLINT, FUNCTION = more)",
)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["public", "public, pg_catalog"])
def test_a_function_of_ones_own_does_not_run_as_another(path, team):
    """Not as the owner and not as who charges, however well it fits, wherever it is looked for."""
    with hs.Ledger(team["ada"]) as ada:
        first = ada.charge("b", G(epsilon=0.25), key="first")
        with psycopg.connect(team["owner"], autocommit=True) as owner:
            owner.execute("GRANT CREATE ON SCHEMA public TO bob")
            owner.execute(f"ALTER ROLE ada SET search_path = {path}")
        with psycopg.connect(team["bob"], autocommit=True) as login:
            login.execute("CREATE TABLE loot (who TEXT)")
            login.execute("GRANT INSERT ON loot TO PUBLIC")
            for each in FITTING:
                gives = "true" if each.endswith("bool") else "'1'::jsonb"
                body = f"'INSERT INTO public.loot VALUES (current_user); SELECT {gives}'"
                kept = each.startswith("OPERATOR")
                body = body if gives == "true" else body.replace("'1'", "''1''")
                login.execute(f"CREATE {each}" + ("" if kept else f" LANGUAGE sql AS {body}"))
        with hs.Ledger(team["ada"]) as fresh:
            for book in (ada, fresh):
                entry = book.charge("b", G(epsilon=0.25))
                assert book.keep_answer("b", entry, "7") == book.answer("b", entry.number) == "7"
                assert book.charge("b", G(epsilon=0.25), key="first").number == first.number
                assert len(book.entries("b")) == entry.number
                assert book.verify("b").startswith(f"{entry.number}:")
        following = forged(ada)
    with psycopg.connect(team["ada"], autocommit=True) as login:  # functions look nothing up there
        made = login.execute(
            "SELECT hushed_append(%s::TEXT, %s::INTEGER, %s::TEXT, %s::TEXT)", ("b", *following)
        )
        assert made.fetchone() == (4,)
    with psycopg.connect(team["bob"], autocommit=True) as login:
        assert login.execute("SELECT * FROM loot").fetchall() == []


def test_a_ledger_is_found_where_the_search_path_of_its_user_finds_it(postgres):
    """Made in the first schema there is, found in the first one that holds it, whatever letters."""
    database = postgres.create_database()
    url, place = postgres.url(database), '"we"".ird:x %s\\:"'
    postgres.run(
        f"CREATE SCHEMA {place}",
        f"ALTER DATABASE {database} SET search_path = nowhere, {place}",
        database=database,
    )
    with hs.Ledger(url) as book:
        book.open_budget("b", G(epsilon=1.0))
        book.keep_answer("b", book.charge("b", G(epsilon=0.25)), "7")
    postgres.run(f"ALTER DATABASE {database} SET search_path = public, {place}", database=database)
    with hs.Ledger(url, create=False) as book:
        assert book.answer("b", 1) == "7"
        assert book.charge("b", G(epsilon=0.25)).number == 2
    found = postgres.run(
        "SELECT DISTINCT table_schema FROM information_schema.tables "
        "WHERE table_name LIKE 'hushed%'",
        database=database,
    )
    assert found.splitlines() == ['we".ird:x %s\\:']


@pytest.mark.slow
@pytest.mark.parametrize("stated", ["costs", "delta"])
def test_a_forged_entry_under_a_key_pays_for_no_answer(team, stated):
    """The program that answers analysts found the key of a question paid for, at no cost."""
    table = hs.table(pa.table({"x": [1.0] * 50, "g": ["a"] * 50})).group_by("g", keys=["a"]).count()
    terms = {"epsilon": 0.5, "delta": 1e-7, "noise": "gaussian"}
    with hs.Ledger(team["owner"]) as owner:
        owner.open_budget("rows", G(epsilon=1.0, delta=1e-6, neighbours="add-remove"))
    planned = table.prepare(**terms)
    with hs.Ledger(team["owner"]) as honest:  # what the question costs, on a budget of its own
        honest.open_budget("other", G(epsilon=1.0, delta=1e-6, neighbours="add-remove"))
        law = {"loss": planned.loss, "question": planned.digest, "key": "mine"}
        paid = honest.charge("other", planned.guarantee, **law)
    if stated == "costs":
        costs = tuple(replace(cost, amount=0.0, delta=0.0) for cost in paid.costs)
    else:
        costs = tuple(replace(cost, amount=cost.amount * (1 - 2**-50)) for cost in paid.costs)
    body = write_entry(replace(paid, budget="rows", costs=costs))
    with hs.Ledger(team["owner"]) as program:
        start = next(each for each in program.budgets() if each.name == "rows").digest
        with psycopg.connect(team["ada"], autocommit=True) as login:
            login.execute("SELECT hushed_append('rows', 1, %s, %s)", (body, digest(start, body)))
        asked = {**terms, "ledger": program, "budget": "rows"}
        with pytest.raises(KeyInUse, match="charged less than"):
            table.release(**asked, key="mine")
        assert program.answer("rows", "mine") is None
        assert table.release(**asked, key="other").entry == 2
        assert table.release(**asked, key="other").entry == 2
        if stated == "costs":  # fewer than the last bits are found
            with pytest.raises(DamagedLedger, match="entry 1 of budget 'rows' states a smaller"):
                program.verify("rows")
        program.verify("other")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["adaptive", "pld"])
def test_an_entry_beyond_the_limit_pays_for_no_answer(team, method):
    """Analysts wrote entries by hand, each as it should be, and many more than the limit allows."""
    table = hs.table(pa.table({"x": [1.0] * 50, "g": ["a"] * 50})).group_by("g", keys=["a"]).count()
    name = f"beyond {method}"
    with hs.Ledger(team["owner"]) as program:
        limit = G(epsilon=1.0, delta=1e-6, neighbours="add-remove")
        link = program.open_budget(name, limit, method=method).digest
        planned = table.prepare(epsilon=0.5)
        law = {"loss": planned.loss, "question": planned.digest}
        paid = program.charge(name, planned.guarantee, **law, key="k1")
        link = paid.digest
        with psycopg.connect(team["ada"], autocommit=True) as login:
            for number in range(2, 8):
                body = write_entry(replace(paid, number=number, key=f"k{number}"))
                link = digest(link, body)
                login.execute("SELECT hushed_append(%s, %s, %s, %s)", (name, number, body, link))
        asked = {"epsilon": 0.5, "ledger": program, "budget": name}
        assert [table.release(**asked, key=key).entry for key in ("k1", "k2", "k1")] == [1, 2, 1]
        for number in range(3, 8):
            with pytest.raises(KeyInUse, match="beyond the limit"):
                table.release(**asked, key=f"k{number}")
            assert program.answer(name, f"k{number}") is None
