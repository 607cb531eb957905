"""What the client of a server knows before it asks: declared bounds and keys, prices, words."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.client import ServedQuote, connect
from hushed.client._datasets import Datasets
from hushed.client._listed import Requests
from hushed.client._questions import read_quote
from hushed.errors import AwaitingApproval, HushedWarning, NotFound, ParameterError, Refusal
from hushed.statements import StatementCheck, make_key

PRIVATE, PUBLIC = make_key()
ME = {"/v1/me": (200, {"id": "ana"})}
KEYS = {"/v1/keys": (200, {"keys": [{"pem": PUBLIC.decode()}]})}

STAYS = {
    "id": "stays",
    "user": None,
    "columns": [
        {"name": "los", "kind": "float", "low": 0.0, "high": 30.0, "keys": None},
        {"name": "cost", "kind": "float", "low": 0.0, "high": None, "keys": None},
        {"name": "ward", "kind": "string", "low": None, "high": None, "keys": ["surgery", "acute"]},
        {"name": "sex", "kind": "string", "low": None, "high": None, "keys": ["f", "m"]},
        {"name": "city", "kind": "string", "low": None, "high": None, "keys": None},
    ],
}
QUOTE = {
    "epsilon": 0.5,
    "delta": 0.0,
    "outputs": [{"name": "count", "error": 6.0, "share": 1.0}],
    "words": "one row costs epsilon 0.5",
    "fits": True,
    "left": {"epsilon": 1.0, "delta": 0.0},
    "left_after": {"epsilon": 0.5, "delta": 0.0},
    "needs_approval": False,
}


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    told = {
        "/v1/me": {"id": "ana"},
        "/v1/datasets/stays": STAYS,
        "/v1/datasets/stays/quote": QUOTE,
    }
    sent = []

    def send(method, path, headers, body):
        sent.append(json.loads(body) if body else None)
        return 200, {}, json.dumps(told[path]).encode()

    made = connect("http://127.0.0.1:8642", "hsh_token", key=PUBLIC, send=send)
    return made, sent


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("stats.pub", "read_bytes"),
        (Path("stats.pub"), "read_bytes"),
        ("", "read_bytes"),
        (b"", "no public Ed25519 key"),
        (b"stats.pub", "no public Ed25519 key"),
        (PRIVATE, "no public Ed25519 key"),
    ],
)
def test_a_key_that_is_none_is_refused_before_anything_is_asked(key, said):
    """It was noticed when an answer was read, and that was paid by then; the key is not shown."""

    def send(*_):
        raise AssertionError("nothing may be sent")

    with pytest.raises(ParameterError, match=said) as caught:
        connect("http://127.0.0.1:8642", "hsh_token", key=key, send=send)
    assert "BEGIN" not in str(caught.value)


def test_declared_bounds_need_not_be_given(client):
    """Those of the steward are taken, and the question says so; given ones come first."""
    stays = client[0].table("stays")
    for asked in (
        stays.median("los"),
        stays.quantiles("los", [0.1, 0.9]),
        stays.sum("los"),
        stays.mean("los"),
        stays.variance("los"),
    ):
        (found,) = asked.aggregates
        assert (found.low, found.high) == (0.0, 30.0)
        assert "taken from what the steward declared: los from 0 to 30" in str(asked)
    (half,) = stays.mean("los", high=10.0).aggregates
    assert (half.low, half.high) == (0.0, 10.0)
    (given,) = (own := stays.mean("los", low=1.0, high=2.0)).aggregates
    assert (given.low, given.high) == (1.0, 2.0)
    assert "declared" not in str(own)


def test_a_bound_of_rows_without_its_name_is_told_how_it_is_given(client):
    with pytest.raises(ParameterError, match=r"bound_contributions\(max_rows_per_user=3\)"):
        client[0].table("stays").bound_contributions(1)


def test_bounds_that_nobody_declared_are_asked_for(client):
    """One end alone is not declared; a column that is not there is named as by the builder."""
    stays = client[0].table("stays")
    with pytest.raises(ParameterError, match="declared no bounds of cost: give low and high"):
        stays.mean("cost")
    with pytest.raises(ParameterError, match="costs"):
        stays.mean("costs")
    with pytest.raises(ParameterError, match="ward"):
        stays.mean("ward")


def test_declared_keys_need_not_be_given(client):
    """All that are missing are filled in; without a list the builder asks for keys."""
    stays = client[0].table("stays")
    grouped = stays.group_by("ward")
    assert grouped.keys.values == (("surgery", "acute"),)
    assert "the keys of ward: 'surgery', 'acute'" in str(grouped)
    assert stays.group_by("ward", "sex").keys.values == (("surgery", "acute"), ("f", "m"))
    both = stays.group_by("ward", "sex", keys={"ward": ["acute"]})
    assert both.keys.values == (("acute",), ("f", "m"))
    assert stays.group_by("ward", select_partitions=True).keys.selected
    with pytest.raises(ParameterError, match="keys"):
        stays.group_by("city")


@pytest.mark.parametrize(
    ("columns", "keys", "said"),
    [
        (("ward",), {"wrad": ["acute"]}, "keys must name the columns"),
        ((["ward"],), None, "group_by takes names of columns"),
        ((["ward"],), ["acute"], "group_by takes names of columns"),
    ],
)
def test_what_is_mistyped_is_refused_and_not_filled_in(client, columns, keys, said):
    """The declared keys in the place of mistyped ones would be paid, unseen."""
    with pytest.raises(ParameterError, match=said):
        client[0].table("stays").group_by(*columns, keys=keys)


def test_a_question_can_be_a_key_of_a_dict(client):
    """As it could before it knew what was declared."""
    stays = client[0].table("stays")
    assert {stays.group_by("ward"): 1}[stays.group_by("ward")] == 1


@pytest.mark.parametrize("keys", [["Surgery"], {"ward": ["Surgery"]}, {"Surgery"}])
def test_keys_that_are_not_declared_are_warned_of(client, keys):
    """A mistyped key is answered with noise around zero, and paid: the warning comes before."""
    stays = client[0].table("stays")
    with pytest.warns(HushedWarning, match="'Surgery' is not among .* near them is 'surgery'"):
        stays.group_by("ward", keys=keys)
    with pytest.warns(HushedWarning, match="'xyz' is not .* it declared 'surgery', 'acute'"):
        stays.group_by("ward", keys=["xyz"])
    for condition in ("los > 2 and ward == 'Surgery'", "ward in ['acute', 'Surgery']"):
        with pytest.warns(HushedWarning, match="'Surgery' is not among .* near them is 'surgery'"):
            stays.filter(condition)
    stays.filter("ward != 'acute' and city == 'Surgery' and los > 2")
    stays.group_by("ward", keys=["acute"])  # warnings are errors here
    stays.group_by("city", keys=["Oslo"])


def test_a_question_is_priced_for_errors_as_a_table_is(client):
    """quote_for asks for the epsilon of some errors, and quote(error=) for that of the only one."""
    made, sent = client
    stays = made.table("stays")
    found = stays.count().quote_for(errors={"count": 6.0})
    assert sent[-1]["errors"] == {"count": 6.0}
    assert found.epsilon == 0.5
    stays.count().quote(error=7.0)
    assert sent[-1]["errors"] == {"count": 7.0}
    with pytest.raises(
        ParameterError, match=r"only output: give errors=\{'count': \.\.\., 'sum_los"
    ):
        stays.count().sum("los").quote(error=7.0)


def test_a_price_explains_itself(client):
    """As the quote of a table does."""
    found = client[0].table("stays").count().quote(epsilon=0.5)
    assert isinstance(found, ServedQuote)
    assert found.explain() == str(found)
    assert "one row costs epsilon 0.5" in found.explain()
    assert found.accuracy("count") == 6.0
    with pytest.raises(NotFound, match="the outputs are count"):
        found.accuracy("counts")


def test_a_price_that_does_not_fit_says_so_first(client):
    """Before the lines of what it would cost."""
    found = client[0].table("stays").count().quote(epsilon=0.5)
    waits = replace(found, fits=False, needs_approval=True)
    assert str(waits).startswith("does not fit into your share: epsilon 1 is")
    assert "steward" not in str(waits)  # none is asked
    assert str(found).startswith("one row costs")
    assert "the budget of the data set is asked when you pay" in str(found)


def test_what_waits_is_said_and_found_by_the_first_characters_of_its_id(monkeypatch):
    """As the pages say it; two that begin alike are not taken for each other."""
    ids = [f"57ef386{end}-0000-4000-8000-000000000000" for end in "445"]
    ids[1] = ids[1].replace("-4000", "-4001")
    query = {"max_rows_per_user": 1, "aggregates": [{"kind": "count"}]}
    terms = {"asker": "ana", "dataset": "stays", "epsilon": 1.0, "delta": 0.0, "note": ""}
    items = [terms | {"id": each, "query": query, "function": None} for each in ids]
    items[0] |= {"query": None, "function": "trimmed"}
    items[1] |= {"query": {"unknown": 1}}

    def send(method, path, headers, body):
        if method == "POST":
            return 200, {}, json.dumps({"id": path, "state": "charged"}).encode()
        if path == f"/v1/requests/{ids[2]}/outlook":
            return 200, {}, json.dumps({"why_not": "The share has no room for it."}).encode()
        if path.endswith("/outlook"):  # a server of an older version
            return 404, {}, b"{}"
        taken.extend([path] if method == "DELETE" else [])
        return 200, {}, json.dumps({"id": "sam", "items": items, "key": "mine"}).encode()

    taken: list[str] = []
    sam = connect("http://127.0.0.1:8642", "hsh_token", key=PUBLIC, send=send)
    assert sam.approve("57ef3865")["id"] == f"/v1/requests/{ids[2]}/approve"
    sam.cancel("57ef3865")
    assert taken == [f"/v1/requests/{ids[2]}"]
    for wrong in ("57ef3864", "57ef", "57ef3866"):
        with pytest.raises(NotFound, match="no such request"):
            sam.decline(wrong, "no")
    monkeypatch.setattr("hushed.client.connect", lambda url: sam)
    told = CliRunner().invoke(app, ["serve", "waiting", "--url", "http://127.0.0.1:8642"]).stdout
    said = ["release of trimmed", "a question that this version does not know", "number of rows"]
    assert [each.strip() for each in told.splitlines()[1:6:2]] == said
    assert told.splitlines()[6] == "  it cannot be approved now: The share has no room for it."


def test_a_client_says_where_the_methods_of_a_table_are(client):
    """Other names are unknown, as of any object; a card shows no token."""
    made = client[0]
    with pytest.raises(AttributeError, match=r"client\.table\(NAME\)\.count\("):
        made.count()
    with pytest.raises(AttributeError, match="no 'nothing'"):
        _ = made.nothing
    stays = made.table("stays")
    for asked, name, near in (
        (made, "tabel", "did you mean 'table'"),
        (stays, "quantile", "'quantiles'"),
        (stays, "max", "group_by, histogram, join"),
        (stays.count().quote(epsilon=0.5), "eplain", "'explain'"),
    ):
        with pytest.raises(AttributeError, match=f"no '{name}'.*{near}"):
            getattr(asked, name)
        with pytest.raises(AttributeError, match=r"no '_repr_png_'$"):
            _ = asked._repr_png_
    assert copy.deepcopy(stays) == stays
    assert repr(made).startswith("<Team server: address http://127.0.0.1:8642")
    assert "hsh_token" not in made._repr_html_() + repr(made) + str(made)


@pytest.mark.slow
def test_the_lines_of_the_page_for_analysts_run(team, tmp_path, monkeypatch):
    """They are asked of a server as they stand there."""
    page = (Path(__file__).parents[2] / "docs/how-to/ask-a-server.md").read_text()
    lines = re.search(r"```text\n(from pathlib.*?)```", page, re.DOTALL)[1]

    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=headers, content=body)
        return found.status_code, found.headers, found.content

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HUSHED_TOKEN", team.ana)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stats.pub").write_bytes(connect("http://localhost:1", send=send).key)
    monkeypatch.setattr(hs, "connect", lambda url, **rest: connect(url, send=send, **rest))
    told = {}
    exec(lines, told)
    assert told["checked"].reproduced
    assert "it was signed by the key" in told["checked"].explain()
    assert told["answer"].keys["ward"] == ("A", "B")
    assert team.charges() == 1
    page_of_it = (tmp_path / "answer.html").read_text(encoding="utf-8")
    assert "the signature was checked" in page_of_it


def answering(tmp_path, monkeypatch, answers):
    """A client of a server that gives one answer to each path."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def send(method, path, headers, body):
        status, told = (answers | KEYS)[path]
        return status, {}, json.dumps(told).encode()

    return connect("http://127.0.0.1:8642", "hsh_token", key=PUBLIC, send=send)


def test_what_waits_and_cannot_be_paid_today_says_so(tmp_path, monkeypatch):
    """Approved today it would be refused: its asker hears that before a steward does."""
    share = {"dataset": "stays", "left_today": 0.1, "per_day": 0.3}
    pending = {"id": "r1", "state": "pending", "dataset": "stays", "epsilon": 0.2}
    answers = {
        "/v1/me": (200, {"id": "ana", "shares": [share]}),
        "/v1/datasets/stays": (200, STAYS),
        "/v1/datasets/stays/requests": (202, pending),
    }
    client = answering(tmp_path, monkeypatch, answers)
    count = client.table("stays").count()
    with pytest.raises(AwaitingApproval, match=r"epsilon 0\.1 left, which cannot pay for it"):
        count.release(epsilon=0.2, key="a")
    share["left_today"] = 0.3
    with pytest.raises(AwaitingApproval) as waits:
        count.release(epsilon=0.2, key="b")
    assert "cannot pay" not in str(waits.value)
    told = QUOTE | {"needs_approval": True, "left_today": 0.1}
    assert "on a later day (UTC)" in str(read_quote(json.dumps(told).encode()))
    assert "later day" not in str(read_quote(json.dumps(told | {"left_today": 0.5}).encode()))


def test_an_id_of_nobody_or_of_somebody_else_says_where_ids_are_listed(tmp_path, monkeypatch):
    """In short and in full, read and taken back; a bare 'no such thing' led nowhere."""
    other = "57ef3865-0000-4000-8000-000000000000"
    refused = (404, {"code": "not_found", "title": "There is no such thing here."})
    answers = {f"/v1/requests/{other}{end}": refused for end in ("", "/answer")}
    answers |= {"/v1/requests?most=100": (200, {"items": []})}
    client = answering(tmp_path, monkeypatch, answers | ME)
    for identity in (other, other[:8]):
        for do in (client.answer, client.cancel):
            with pytest.raises(NotFound, match=r"no such request of yours.*requests\(\) lists"):
                do(identity)


def test_a_token_that_may_not_ask_is_not_sent_to_recover(tmp_path, monkeypatch):
    refusal = {"code": "forbidden", "title": "This token may not do that.", "detail": "Use another"}
    answers = {
        "/v1/me": (200, {"id": "sam", "role": "steward"}),
        "/v1/datasets/stays": (200, STAYS),
        "/v1/datasets/stays/requests": (403, refusal),
    }
    client = answering(tmp_path, monkeypatch, answers)
    with pytest.raises(Refusal, match=r"may not do that\. Use another") as refused:
        client.table("stays").count().release(epsilon=0.2)
    assert "recover" not in str(refused.value)


def test_data_sets_are_printed_in_lines(tmp_path, monkeypatch):
    share = {"epsilon": 1.5, "left": {"epsilon": 1.2, "delta": 0.0}, "left_today": None}
    share |= {"gamma": 0.1, "gamma_left": 0.05}
    days = {"left_today": 0.75, "per_day": 1.5, "today": "2026-12-01"}
    limits = {"max_epsilon": 1.0, "approve_above": 0.5, "max_rows_per_user": 3}
    listed = [STAYS | {"share": share, "open": True} | limits]
    client = answering(tmp_path, monkeypatch, {"/v1/datasets": (200, {"items": listed})} | ME)
    found = client.datasets()
    assert found == listed
    assert str(Datasets([{"columns": 1, "share": 2}])) == "[{'columns': 1, 'share': 2}]"
    assert str(found).splitlines() == [
        "stays: protected is each row",
        "  your share has left: epsilon 1.2 of 1.5, gamma 0.05 of 0.1 for functions",
        "  one request costs epsilon 1 at most (above 0.5 a steward has to approve it)",
        "  of each person 3 rows count",
        "  los, float, from 0.0 to 30.0",
        "  cost, float, from 0.0 to ?",
        "  ward, string: surgery, acute",
        "  sex, string: f, m",
        "  city, string",
    ]
    one = Datasets([listed[0] | {"max_rows_per_user": 1}])
    assert "  of each person 1 row counts" in str(one).splitlines()
    said = str(Datasets([STAYS | {"share": share | days}]))
    assert "epsilon 1.2 of 1.5, today (2026-12-01, UTC) 0.75 of 1.5 for each day, gamma" in said


def test_functions_and_requests_are_printed_in_lines(tmp_path, monkeypatch):
    """As lists of dicts they were pages, in which nobody found the id to read an answer by."""
    function = {"id": "yearly", "dataset": "stays", "says": "cost of a person", "gamma": 0.05}
    function |= {"min_epsilon": 0.1, "max_epsilon": 1.0, "rows": [6000], "unit": "user"}
    bare = function | {"says": "", "min_epsilon": 0.0, "rows": None, "closed": "no gamma is left"}
    asked = {"id": "7f", "dataset": "stays", "asker": "ana", "state": "declined", "key": "mine"}
    asked |= {"query": {"aggregates": [{"name": "count"}], "groups": {"columns": ["ward"]}}}
    asked |= {"epsilon": 0.3, "delta": 0.0, "asked_at": "2026-12-01T07:10:29.28+00:00"}
    asked |= {"function": None, "note": "a\nb", "reason": "too many groups"}
    steps = [{"filter": "age >= 65"}, {"derive": "a", "as": "b"}, {"join": "ward", "keys": ["x"]}]
    fewer = asked | {"query": asked["query"] | {"steps": steps}}
    other = asked | {"query": None, "function": "yearly", "delta": 1e-6, "note": "", "reason": ""}
    kept = {"kept_until": "2027-02-03T01:02+00:00", "deleted_at": "2027-02-04T01:02+00:00"}
    answers = {
        "/v1/functions": (200, {"items": [function, bare | {"approve_above": 0.5}]}),
        "/v1/requests?most=100": (200, {"items": [asked, fewer, other | kept]}),
        "/v1/requests?state=pending&most=100": (200, {"items": []}),
    }
    client = answering(tmp_path, monkeypatch, answers | ME)
    assert str(client.functions()).splitlines() == [
        "yearly, of stays: cost of a person",
        "  a release costs epsilon from 0.1 up to 1, and has gamma 0.05",
        "  what is promised is for tables of 6,000 people",
        "yearly, of stays",
        "  a release costs epsilon up to 1 (above 0.5 a steward has to approve it), "
        "and has gamma 0.05",
        "  it cannot be asked: no gamma is left",
    ]
    found = client.requests()
    assert found[0] == asked
    assert repr(found).splitlines() == [
        "7f  declined: count by ward of stays, epsilon 0.3",
        "  asked by ana, 2026-12-01 07:10 UTC, key 'mine', note 'a\\nb', because too many groups",
        "7f  declined: count by ward of stays, where age >= 65, joined by ward, epsilon 0.3",
        "  asked by ana, 2026-12-01 07:10 UTC, key 'mine', note 'a\\nb', because too many groups",
        "7f  declined: function yearly of stays, epsilon 0.3, delta 1e-06",
        "  asked by ana, 2026-12-01 07:10 UTC, key 'mine', kept until 2027-02-03, "
        "deleted 2027-02-04",
    ]
    assert str(client.waiting()) == "no request"
    assert str(Requests([{"id": 1}])) == "[{'id': 1}]"
    assert str(Requests([asked | {"query": None}])).startswith("[{'id': '7f'")


def test_one_error_of_the_only_output_is_enough(tmp_path, monkeypatch):
    """As for `quote`; it was an error of Python."""
    answers = {"/v1/datasets/stays": (200, STAYS), "/v1/datasets/stays/quote": (200, QUOTE)}
    client = answering(tmp_path, monkeypatch, answers | ME)
    question = client.table("stays").count()
    assert question.quote_for(error=50).epsilon == QUOTE["epsilon"]
    with pytest.raises(ParameterError, match=r"call it as in table\.count\(\)\.quote_for\(errors="):
        question.quote_for(50)
    with pytest.raises(ParameterError, match=r"must be given, such as errors=\{'count'"):
        question.quote_for()
    with pytest.raises(ParameterError, match="error is that of the only output"):
        question.mean("los").quote_for(error=50)


def test_what_a_signature_covers_is_said_first():
    check = StatementCheck(
        kind="answer",
        agreement="bits",
        checked=("a",),
        differences=(),
        unchecked=("b",),
        signature=True,
    )
    assert check.explain().splitlines()[1].startswith("the signature covers the whole text")
    assert "covers" not in replace(check, signature=False).explain()
