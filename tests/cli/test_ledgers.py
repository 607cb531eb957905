"""``hushed ledger``: one JSON object each, exit codes, files; and releases that are charged."""

import json
import re
from dataclasses import replace
from typing import get_args

import pytest
import vl_convert
from typer.testing import CliRunner

import hushed as hs
from hushed.accounting._filters import FilterMethod
from hushed.cli import app
from hushed.errors import ParameterError
from hushed.ledger import Moment
from hushed.plots._ledgers import budget_over_time

URL = "sqlite:///budget.db"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["ledger", *(str(each) for each in arguments)])


def json_of(result):
    """Standard output is exactly one JSON object."""
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


@pytest.mark.slow
def test_open_charge_show_export(folder):
    """A budget is opened, charged with a law, shown, drawn and exported."""
    opened = run("open", URL, "study", "--epsilon", 2, "--delta", 1e-6, "--gamma", 0.1, "--json")
    assert opened.exit_code == 0
    assert json_of(opened)["epsilon_left"] == 2.0
    charged = run("charge", URL, "study", "--epsilon", 0.5, "--loss", "laplace:0.5", "--json")
    assert charged.exit_code == 0
    assert json_of(charged)["charged"] == 1
    assert json_of(charged)["spent"]["epsilon"] == 0.5
    shown = run("show", URL, "study", "--plot", "study.svg")
    assert shown.exit_code == 0
    assert "25.0 % used" in shown.stdout
    assert "<svg" in (folder / "study.svg").read_text()
    (told,) = json_of(run("show", URL, "--json"))["budgets"]
    assert told["entries"] == 1
    exported = json_of(run("export", URL, "--json"))
    assert exported["budgets"][0]["entries"][0]["law"][0]["law"] == "laplace"
    assert run("export", URL, "study", "--out", "copy.json").exit_code == 0
    assert json.loads((folder / "copy.json").read_text()) == exported
    assert json.loads(run("export", URL).stdout) == exported


def test_overspending_exits_with_one_and_says_what_is_left():
    """Refused, with the type of the refusal and what could still be charged."""
    run("open", URL, "study", "--epsilon", 1)
    assert run("charge", URL, "study", "--epsilon", 0.75, "--note", "first").exit_code == 0
    result = run("charge", URL, "study", "--epsilon", 0.5, "--json")
    assert result.exit_code == 1
    error = json_of(result)["error"]
    assert error["type"] == "Overspent"
    assert "epsilon 0.25" in error["message"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", URL), 2),
        (("charge", URL, "study", "--epsilon", 1), 2),
        (("open", "budget.db", "study", "--epsilon", 1), 2),
        (("open", URL, "study", "--epsilon", "nan"), 2),
        (("open", URL, "study", "--epsilon", 1, "--method", "zcdp"), 2),
        (("show", URL, "--plot", "x.svg"), 2),
        (("show", "sqlite:///notes.txt"), 1),
    ],
)
def test_bad_use_and_refusals(folder, arguments, code):
    """Nothing is made by asking; other files are refused."""
    (folder / "notes.txt").write_text("no ledger")
    assert run(*arguments).exit_code == code
    if arguments[0] != "open":
        assert not (folder / "budget.db").exists()


def test_a_misspelt_budget_is_told_with_those_there_are():
    """The names, so that one can be picked; nothing is charged."""
    run("open", URL, "study", "--epsilon", 1)
    for words in (("charge", URL, "studdy", "--epsilon", 0.1), ("show", URL, "studdy")):
        refused = run(*words)
        assert refused.exit_code == 2
        assert "no budget 'studdy' in this ledger, which has 'study'" in refused.stderr


def test_other_losses_are_refused():
    """A guarantee is no law, and a law of another promise is a mistake."""
    run("open", URL, "study", "--epsilon", 1)
    for loss in ("guarantee:0.1", "laplace:0.2", "magic:1"):
        assert run("charge", URL, "study", "--epsilon", 0.1, "--loss", loss).exit_code == 2


@pytest.mark.slow
def test_a_release_is_charged_or_refused(folder):
    """The command's certificate names the charge; the second release does not fit."""
    (folder / "f.py").write_text("def center(rows):\n    return float(rows[:, 0].mean())\n")
    (folder / "private.csv").write_text("age\n" + "\n".join(str(20 + i) for i in range(30)))
    run("open", URL, "study", "--epsilon", 1.5, "--gamma", 0.1)
    release = ["release", "private.csv", "f.py:center", "--population", "uniform:20,80", "--header"]
    release += ["--epsilon", "1", "--gamma", "0.05", "--workers", "1", "--json"]
    paid = [*release, "--ledger", URL, "--budget", "study", "--note", "mean age"]
    first = CliRunner().invoke(app, paid)
    assert first.exit_code == 0, first.output
    assert "charge 1 of the budget 'study'" in json.loads(first.stdout)["certificate"]["charged"]
    second = CliRunner().invoke(app, paid)
    assert second.exit_code == 1
    assert json.loads(second.stdout)["error"]["type"] == "Overspent"
    for half in (["--ledger", URL], ["--budget", "study"], ["--ledger", URL, "--budget", "no"]):
        assert CliRunner().invoke(app, [*release, *half]).exit_code == 2
    with hs.Ledger(URL) as book:
        (entry,) = book.entries("study")
        assert entry.note == "mean age"
        assert book.balance("study").spent.gamma == entry.guarantee.gamma > 0


def test_the_figure_holds_the_history():
    """The drawn steps are the shares of the history, and the limit is a line."""
    with hs.Ledger(URL) as book:
        budget = book.open_budget("study", hs.Guarantee(epsilon=1.0))
        for _ in range(3):
            book.charge("study", hs.Guarantee(epsilon=0.25))
        chart = budget_over_time(budget, book.history("study")).to_dict()
    steps, top = chart["layer"]
    assert [row["used"] for row in steps["data"]["values"]] == [0, 25, 50, 75]
    assert top["data"]["values"] == [{"used": 100}]
    assert "% of the budget" in json.dumps(chart)


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        ("2026-11-22T20:02:10+00:00", r"19:[3-5]\d:\d\d"),
        ("2026-11-24T08:00:00+00:00", r"2026-11-22 (19|2\d):\d\d|2026-11-23 \d\d:00"),
        ("2027-02-01T00:00:00+00:00", r"2026-12-\d\d"),
    ],
)
def test_the_figure_tells_the_day_and_the_hour_of_24(ended, told):
    """As the axis is drawn; and one charge is not "1 charges"."""
    history = [
        Moment(at="2026-11-22T19:32:04+00:00", number=0, used=0.0, note=""),
        Moment(at=ended, number=1, used=0.5, note="mean age"),
    ]
    with hs.Ledger(URL) as book:
        budget = book.open_budget("study", hs.Guarantee(epsilon=1.0))
    drawn = vl_convert.vegalite_to_svg(budget_over_time(budget, history).to_dict())
    words = re.findall(r">([^<>]+)</text>", drawn)
    assert sum(bool(re.fullmatch(told, each)) for each in words) >= 2, words
    assert any("2026-11-2" in each or "2026-12" in each for each in words)
    assert any(each.endswith("; 1 charge") for each in words)


def test_a_budget_for_users():
    """The unit is an option of the budget, and by default that of its charges."""
    opened = run("open", URL, "people", "--epsilon", 1, "--unit", "user", "--json")
    assert json_of(opened)["limit"]["unit"] == "user"
    assert json_of(run("charge", URL, "people", "--epsilon", 0.5, "--json"))["charged"] == 1
    refused = run("charge", URL, "people", "--epsilon", 0.25, "--unit", "row", "--json")
    assert refused.exit_code != 0
    assert "unit='row'" in json_of(refused)["error"]["message"]
    assert "unit user" in run("show", URL).stdout


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("method", get_args(FilterMethod))
def test_every_budget_of_python_can_be_opened(delta, method):
    """Every option of `Ledger.open_budget`, and every field of its limit, is one of the command."""
    limit = hs.Guarantee(
        epsilon=2.0,
        delta=delta,
        gamma=0.1,
        neighbours="add-remove",
        unit="user",
        protect="simultaneous",
        data_dependent=True,
    )
    levels = ["--epsilon", 2, "--delta", delta, "--gamma", 0.1, "--data-dependent"]
    whom = ["--neighbours", "add-remove", "--unit", "user", "--protect", "simultaneous"]
    order = 30.0 if method == "renyi" else None
    rule = ["--method", method, "--slack", 0.25, *(["--order", order] if order else [])]
    opened = run("open", URL, "b", *levels, *whom, *rule, "--note", "all", "--json")
    rest = {"method": method, "slack": 0.25, "order": order, "note": "all"}
    with hs.Ledger(URL) as book:
        if delta == 0 and method in ("zcdp", "renyi", "gaussian"):
            with pytest.raises(ParameterError) as refusal:
                book.open_budget("p", limit, **rest)
            assert opened.exit_code == 2
            assert json_of(opened)["error"]["message"] == f"--{refusal.value}"
        else:
            ours = book.open_budget("p", limit, **rest)
            theirs = next(each for each in book.budgets() if each.name == "b")
            assert theirs == replace(ours, name="b", opened=theirs.opened, digest=theirs.digest)


@pytest.mark.slow
def test_a_nominal_budget_is_opened_marked_and_charged(folder):
    """Numbers that prove nothing need a budget opened for them, and every word of it says so."""
    (folder / "f.py").write_text("def center(rows):\n    return float(rows[:, 0].mean())\n")
    (folder / "private.csv").write_text("age\n" + "\n".join(str(20 + i) for i in range(30)))
    release = ["release", "private.csv", "f.py:center", "--population", "private.csv"]
    release += ["--epsilon", "1", "--gamma", "0.05", "--workers", "1", "--data-dependent"]
    release += ["--ledger", URL, "--json", "--budget"]
    limit = ["--epsilon", 2, "--gamma", 0.1]
    assert "nominal" not in run("open", URL, "proven", *limit).stdout
    refused = CliRunner().invoke(app, [*release, "proven"])
    assert refused.exit_code == 2
    message = json.loads(refused.stdout)["error"]["message"]
    assert (
        "data_dependent=True in its limit (hushed ledger open LEDGER NAME --epsilon EPSILON "
        "--data-dependent). Nothing was charged" in message
    )
    assert message.count("--data-dependent") == 1
    opened = run("open", URL, "nominal", *limit, "--data-dependent")
    assert "nominal, not a privacy guarantee" in opened.stdout
    paid = CliRunner().invoke(app, [*release, "nominal"])
    assert paid.exit_code == 0, paid.output
    charged = json.loads(paid.stdout)["certificate"]["charged"]
    assert "nominal, not a privacy guarantee" in charged
    by_hand = ("--epsilon", 0.25, "--data-dependent", "--json")
    assert run("charge", URL, "proven", *by_hand).exit_code == 2
    assert json_of(run("charge", URL, "nominal", *by_hand))["spent"]["data_dependent"] is True


def test_a_charge_by_hand_says_whom_its_gamma_protects():
    """A gamma for one record is not written down as one for everyone."""
    run("open", URL, "all", "--epsilon", 1, "--gamma", 0.1, "--protect", "everyone")
    charge = ("charge", URL, "all", "--epsilon", 0.25, "--gamma", 0.01)
    refused = run(*charge, "--protect", "record", "--json")
    assert "one record at a time" in json_of(refused)["error"]["message"]
    assert run(*charge, "--protect", "simultaneous").exit_code == 0
    with hs.Ledger(URL) as book:
        assert [e.guarantee.protect for e in book.entries("all")] == ["simultaneous"]


@pytest.mark.slow
def test_a_query_says_which_budget_it_needs_and_takes_it(folder):
    """The default budget refuses a query once, with every option of the one that takes it."""
    (folder / "stays.csv").write_text("patient\n" + "\n".join(str(i // 2) for i in range(40)))
    run("open", URL, "clinic", "--epsilon", 1, "--delta", 1e-6, "--gamma", 0.1)
    query = ["query", "stays.csv", "--user", "patient", "--count", "--max-rows-per-user", "1"]
    query += ["--epsilon", "0.1", "--ledger", URL, "--budget"]
    refused = CliRunner().invoke(app, [*query, "clinic", "--json"])
    assert refused.exit_code == 2
    message = json.loads(refused.stdout)["error"]["message"]
    options = "--neighbours add-remove --unit user"
    assert options in message
    assert "Nothing was charged" in message
    opened = run("open", URL, "people", "--epsilon", 1, *options.split())
    assert opened.exit_code == 0
    assert "no charge" not in opened.stderr
    assert CliRunner().invoke(app, [*query, "people"]).exit_code == 0
    remark = run("open", URL, "swapped", "--epsilon", 1, "--unit", "user", "--json")
    assert "--neighbours add-remove --unit user" in remark.stderr
    assert json_of(remark)["limit"]["neighbours"] == "replace-one"


def test_a_key_written_by_hand_adds_no_line(monkeypatch):
    """A program of somebody else may write any key: no list then tells of a charge that is none."""
    monkeypatch.setattr("hushed.ledger._accounts.check_key", lambda *_: None)
    monkeypatch.setattr("hushed.ledger._requests.check_new", lambda *_: None)
    with hs.Ledger(URL) as book:
        book.open_budget("study", hs.Guarantee(epsilon=1.0))
        book.charge("study", hs.Guarantee(epsilon=0.1), "count", key="k]\n2  4.0  forged\x1b[2J")
    shown = run("show", URL, "study").stdout
    assert shown.splitlines()[-1].startswith("1 ")
    assert "forged" in shown.splitlines()[-1]


@pytest.mark.slow
def test_the_last_charges_are_listed(folder):
    """Show lists number, time, levels and note; --entries says how many; JSON has plain numbers."""
    with hs.Ledger(URL) as book:
        book.open_budget("study", hs.Guarantee(epsilon=2.0, delta=1e-6, gamma=0.1))
        for number in range(12):
            book.charge("study", hs.Guarantee(epsilon=0.1, gamma=0.001), f"question {number}")
        book.charge("study", hs.Guarantee(epsilon=0.25, delta=1e-8), "steer\x1b[2J\nthe terminal")
    text = run("show", URL, "study").stdout
    listed = text[text.index("entry ") :].splitlines()
    assert [line.split()[0] for line in listed] == ["entry", "(3", *map(str, range(4, 14))]
    assert listed[2].split()[-2:] == ["question", "3"]
    assert listed[2].split()[3:6] == ["0.1", "0", "0.001"]
    assert "\x1b" not in text
    assert listed[-1].endswith("steer [2J the terminal")
    every = run("show", URL, "--entries", "all").stdout
    assert "earlier" not in every
    assert sum("question" in line for line in every.splitlines()) == 12
    assert "question" not in run("show", URL, "--entries", 0).stdout
    (told,) = json_of(run("show", URL, "--entries", 2, "--json"))["budgets"]
    assert told["entries"] == 13
    last = told["charges"][-1]
    assert (last["number"], last["epsilon"], last["delta"], last["gamma"]) == (13, 0.25, 1e-8, 0)
    assert [each["epsilon"] for each in told["charges"]] == [0.1, 0.25]
    exported = json_of(run("export", URL, "--json"))["budgets"][0]["entries"]
    assert last["digest"] == exported[-1]["digest"]
    for wrong in ("-1", "some", "1.5"):
        assert run("show", URL, "--entries", wrong).exit_code == 2


@pytest.mark.slow
def test_charges_without_a_note_say_what_was_asked(folder):
    """A release notes mechanism and function, a query its aggregates; no value and no key."""
    (folder / "f.py").write_text("def center(rows):\n    return float(rows[:, 0].mean())\n")
    (folder / "private.csv").write_text("age\n" + "\n".join(str(20 + i) for i in range(30)))
    (folder / "stays.csv").write_text("ward,cost\n" + "\n".join(f"w{i % 2},{i}" for i in range(40)))
    run("open", URL, "study", "--epsilon", 1.5, "--gamma", 0.1)
    run("open", URL, "rows", "--epsilon", 1.5, "--neighbours", "add-remove")
    release = ["release", "private.csv", "f.py:center", "--population", "uniform:20,80", "--header"]
    release += ["--epsilon", "1", "--gamma", "0.05", "--workers", "1", "--ledger", URL]
    assert CliRunner().invoke(app, [*release, "--budget", "study"]).exit_code == 0
    query = ["query", "stays.csv", "--type", "cost=float", "--where", "cost < 30", "--by", "ward"]
    query += ["--keys", "ward=w0,w1", "--count", "--sum", "cost:0:40", "--epsilon", "0.5"]
    asked = CliRunner().invoke(app, [*query, "--ledger", URL, "--budget", "rows"])
    assert asked.exit_code == 0, asked.output
    with hs.Ledger(URL) as book:
        assert book.entries("study")[0].note == "Laplace: center"
        assert book.entries("rows")[0].note == "query: count, sum(cost) of filtered rows by ward"
    for command in (release, [*query, "--ledger", URL], [*query, "--quote", "--ledger", URL]):
        lacking = CliRunner().invoke(app, [*command, "--json"])
        assert lacking.exit_code == 2
        assert (
            "--ledger was given without --budget NAME"
            in json.loads(lacking.stdout)["error"]["message"]
        )


@pytest.mark.parametrize("epsilon", ["-2", "0", "inf", "nan"])
def test_a_limit_on_epsilon_has_one_range(epsilon):
    """Whatever is wrong with it, the same range is told."""
    refused = run("open", URL, "study", "--epsilon", epsilon, "--json")
    assert refused.exit_code == 2
    assert "must be finite and above 0" in json_of(refused)["error"]["message"]


@pytest.mark.slow
def test_every_ledger_that_a_command_opens_is_closed(folder, monkeypatch):
    """After an answer and after a refusal; a release and a query charge the same way."""
    run("open", URL, "study", "--epsilon", 2, "--neighbours", "add-remove")
    (folder / "rows.csv").write_text("x\n1\n2\n")
    (folder / "f.py").write_text("def f(rows): return rows.mean()\n")
    opened, closed = [], []
    begin, end = hs.Ledger.__init__, hs.Ledger.close
    monkeypatch.setattr(
        hs.Ledger, "__init__", lambda self, *a, **k: (opened.append(self), begin(self, *a, **k))[1]
    )
    monkeypatch.setattr(hs.Ledger, "close", lambda self: (closed.append(self), end(self))[1])
    paid = ("--epsilon", "1", "--ledger", URL, "--budget")
    asked = ("query", "rows.csv", "--count", *paid)
    released = (
        "release",
        "rows.csv",
        "f.py:f",
        "--population",
        "uniform:0,1",
        "--gamma",
        "0.3",
        "--header",
    )
    for words, code in [
        ((*asked, "study", "--quote"), 0),
        ((*asked, "study"), 0),
        ((*asked, "nobody"), 2),
        ((*released, *paid, "study"), 2),  # other neighbours
        ((*released, *paid, "nobody"), 2),
    ]:
        assert CliRunner().invoke(app, words).exit_code == code
    assert len(opened) == len(closed) == 5
    assert set(map(id, opened)) == set(map(id, closed))


@pytest.mark.parametrize("unit", ["row", "user"])
def test_a_budget_that_takes_no_query_says_so_when_it_is_opened(unit):
    """With the command of one that does; a budget for queries opens without a remark."""
    said = run("open", URL, unit, "--epsilon", 1, "--unit", unit).stderr
    assert "no charge of hushed query" in said
    advised = re.search(r"--epsilon EPSILON (.*)", said)[1]
    assert "--unit user" in advised  # of rows, too: they may be queried with --user
    options = advised.partition(",")[0].split()
    assert {"--neighbours", "add-remove"} <= set(options)
    other = run("open", URL, "queries", "--epsilon", 1, *options)
    assert other.exit_code == 0
    assert other.stderr == ""
    with hs.Ledger(URL) as book:
        limit = book.balance("queries").budget.limit
    assert (limit.neighbours, limit.unit) == ("add-remove", unit)


def test_several_prices_show_the_budget_after_all_and_speak_of_no_charge(tmp_path, monkeypatch):
    """The price of several questions against a budget that has room, and one that has not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x\n1\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(
            'format = "hushed query 1"\n[[aggregates]]\nkind = "count"\nname = "n"\n'
        )
    run("open", URL, "rows", "--epsilon", 1, "--neighbours", "add-remove")
    words = ["query", "a.csv", "--file", "one.toml", "--file", "two.toml", "--quote"]
    words += ["--ledger", URL, "--budget", "rows", "--epsilon"]
    fits = CliRunner().invoke(app, [*words, "0.3"])
    assert "the budget after these:" in fits.stdout
    beyond = CliRunner().invoke(app, [*words, "0.7"])
    assert "together they do not fit" in beyond.stdout
    assert "Nothing was charged" not in beyond.output
