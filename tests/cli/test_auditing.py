"""The command audit: what it prints, and with which exit code."""

import json
import sys

import pytest
from typer.testing import CliRunner

from hushed import zoo
from hushed.cli import app

MECHANISMS = """
import numpy as np

def responses(rows, rng, size):
    return np.where(rng.random(size) < 0.75, rows[0], 1 - rows[0])

def count(rows, rng, size):
    steps = rng.geometric(1 - np.exp(-1 / 64), (2, size))
    return np.round(np.sum(rows) * 64) / 64 + (steps[0] - steps[1]) / 64

def pair_sum(rows, rng, size):  # the movement of a row is that of both its columns
    assert rows.shape[1] == 2
    return count(rows, rng, size)

def single(rows, rng):
    return bool(rng.random() < 0.5)
"""

PROGRAM = """
import json, sys
for line in sys.stdin:
    print(json.loads(line)["seed"] % 2, flush=True)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(MECHANISMS)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "pairs.json").write_text("[[[1, 5], [0, 5]]]")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments), "--workers", "1"])


COMMON = ("m.py:responses", "--batch", "--pairs", "one below", "--answers", 1, "--samples", 9000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("m.py:responses", "--claim-epsilon", 1, "--pairs", "one below"), "say --batch"),
        ((*COMMON, "--claim-epsilon", 1, "--html", "none/page.html"), "there is no folder"),
        ((*COMMON, "--claim-epsilon", 1, "--html", "m.py"), "an input of this command"),
        (("zoo", "--claim-delta", 0.1, "--html", "p.html"), "leave out --claim-delta, --html"),
        (("zoo", "--pairs", "patterns", "--answers", 5), "leave out --pairs, --answers"),
        (("zoo", "--bits"), "leave out --bits"),
        (("zoo", "--confidence", 0.3), "confidence must lie in (0.5, 1), got 0.3"),
    ],
)
def test_what_keeps_an_audit_from_running_is_no_violation(folder, arguments, message):
    """Exit 1 is a verdict; bad use is 2, told before anything runs."""
    done = run(*arguments)
    assert done.exit_code == 2, done.stderr
    assert message in done.stderr
    assert "bound expected" not in done.stderr
    assert (folder / "m.py").read_text() == MECHANISMS


@pytest.mark.slow
def test_verdict_exit_code_and_page(folder):
    """A violation exits 1, with progress on standard error and a page on request."""
    done = run(*COMMON, "--claim-epsilon", 0.5, "--html", "page.html")
    assert done.exit_code == 1, done.stderr
    assert done.stdout.startswith("VIOLATED")
    assert "bound expected" in done.stderr
    page = (folder / "page.html").read_text()
    assert "Audit: violated" in page
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org/", "")  # names, no addresses
    fine = run(*COMMON, "--claim-epsilon", 1.2)
    assert fine.exit_code == 0
    assert fine.stdout.startswith("NOT REFUTED")


@pytest.mark.parametrize("extra", [(), ("--sequential",)])
def test_json_is_one_object(folder, extra):
    """Standard output holds the record and nothing else."""
    done = run(*COMMON, "--claim-epsilon", 0.5, "--json", *extra)
    found = json.loads(done.stdout)
    assert found["verdict"] == "violated"
    assert 0.5 <= found["certified"]["epsilon_low"] <= 1.0987


COUNT = ("m.py:count", "--batch", "--samples", 9000, "--claim-epsilon", 1)
EXTREMES = (*COUNT, "--pairs", "extremes")


def test_a_right_count_is_not_accused_by_silence(folder):
    """Without pairs nothing is run: the message tells rows from answers, and exit code is 2."""
    done = run(*COUNT)
    assert done.exit_code == 2
    assert "--pairs is needed. For a function of rows: 'extremes'" in done.stderr
    assert "For a function of a list of query answers: 'patterns'" in done.stderr
    assert "bound expected" not in done.stderr
    assert done.stdout == ""


@pytest.mark.slow_cases("-1-extra2-1")
@pytest.mark.parametrize(
    ("low", "extra", "code"),
    [
        ("0", (), 0),
        ("0", ("--neighbours", "add-remove", "--rows", 1), 0),
        ("-1", (), 1),
        ("-1", ("--neighbours", "add-remove"), 0),
    ],
)
def test_tables_at_the_ends_of_a_domain(folder, low, extra, code):
    """A count of rows in [0, 1] keeps epsilon 1; of rows in [-1, 1] only if rows come and go."""
    done = run(*EXTREMES, "--low", low, "--high", 1, *extra)
    assert done.exit_code == code, done.stderr
    relation = "add-remove" if extra else "replace-one"
    assert f"(epsilon = 1, delta = 0) for {relation} neighbours." in done.stdout
    assert "answers" not in done.stdout


def test_low_bits_are_told_apart_from_a_wrong_scale(folder):
    """A right Laplace count in doubles falls by its bits, and the option that leaves them out."""
    (folder / "n.py").write_text(
        "def count(rows, rng, size):\n    return sum(rows) + rng.laplace(size=size)\n"
    )
    options = ("n.py:count", *EXTREMES[1:], "--low", 0, "--high", 1)
    done = run(*options)
    assert done.exit_code == 1
    assert "the lowest set bit" in done.stdout
    assert "--no-bits judges the values alone" in done.stdout
    done = run(*options, "--no-bits")
    assert done.exit_code == 0
    assert "--no-bits" not in done.stdout


@pytest.mark.slow
def test_what_only_fails_is_not_judged(folder):
    """A program that is not there would be refuted by nothing: exit 2, with what it said."""
    words = (sys.executable + " none.py", "--command", "--claim-epsilon", 1, "--samples", 9000)
    done = run(*words, "--pairs", "pairs.json")
    assert done.exit_code == 2
    assert "none.py" in done.stderr
    assert "VIOLATED" not in done.stdout
    assert "REFUTED" not in done.stdout


@pytest.mark.slow
def test_the_zoo_counts_caught_and_accused(monkeypatch):
    """One broken mechanism and a right one: a line for each, and what to make of them."""
    two = [zoo.find("NoisyHist2"), zoo.find("SVT2")]
    monkeypatch.setattr(zoo, "specimens", lambda claim: two)
    done = run("zoo", "--samples", 9000)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count(" s\n") == 2
    assert "1 of 1 that are not private were caught" in done.stdout
    assert "0 of 1 private ones accused. All verdicts and bounds hold together with" in done.stdout


@pytest.mark.slow
def test_the_zoo_looks_at_bits_where_a_mechanism_is_stated_for_doubles(monkeypatch):
    """Textbook noise is caught by its low bits; of the others only values are judged, or told."""
    two = [zoo.find("NoisyHist2"), zoo.find("Laplace on doubles (faulty)")]
    monkeypatch.setattr(zoo, "specimens", lambda claim: two)
    found = json.loads(run("zoo", "--samples", 20000, "--json").stdout)
    assert [row["bits"] for row in found["zoo"]] == [False, True]
    assert [found[count] for count in ("caught", "missed", "accused", "cleared")] == [2, 0, 0, 0]
    found = json.loads(run("zoo", "--samples", 20000, "--no-bits", "--json").stdout)
    assert [row["bits"] for row in found["zoo"]] == [False, False]
    assert (found["caught"], found["missed"]) == (1, 1)
    told = run("zoo", "--samples", 9000).stdout
    assert "all but Laplace on doubles (faulty), by the bit patterns of doubles" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "option", "code", "words"),
    [
        ("Laplace on doubles (faulty)", (), 1, "for which this mechanism is stated"),
        ("Laplace on doubles (faulty)", ("--bits",), 1, "for which this mechanism is stated"),
        ("Laplace on doubles (faulty)", ("--no-bits",), 0, "the values alone, although"),
        ("Laplace", (), 0, "the values alone, for the zoo states this mechanism for real numbers"),
        ("Laplace", ("--bits",), 1, "bits may rightly refute noise whose formula is right"),
    ],
)
def test_one_of_the_zoo_says_what_was_judged(name, option, code, words):
    """An explicit option is followed, and the report names what was looked at."""
    done = run(f"zoo:{name}", "--samples", 50000, *option)
    assert done.exit_code == code, done.stderr
    assert words in done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_the_zoo_shares_out_its_error(monkeypatch):
    """Among two mechanisms each is bounded as sharply as alone at half of the error."""
    one = zoo.find("NoisyHist2")
    monkeypatch.setattr(zoo, "specimens", lambda claim: [one, one])
    printed = json.loads(run("zoo", "--samples", 9000, "--json").stdout)
    shared = printed["zoo"]
    assert printed["confidence"] == 0.95
    monkeypatch.setattr(zoo, "specimens", lambda claim: [one])
    found = {
        confidence: json.loads(
            run("zoo", "--samples", 9000, "--confidence", confidence, "--json").stdout
        )["zoo"][0]["epsilon_low"]
        for confidence in (0.95, 0.975)
    }
    assert {each["epsilon_low"] for each in shared} == {found[0.975]}
    assert found[0.975] < found[0.95]


@pytest.mark.slow
def test_columns_have_their_own_ends(folder):
    """Two columns move a sum by both widths: 0.5 and 0.5 keep epsilon 1, 0.5 and 1 do not."""
    options = ("m.py:pair_sum", *EXTREMES[1:], "--low", "0,0", "--high")
    assert run(*options, "0.5,0.5").exit_code == 0
    assert run(*options, "0.5,1").exit_code == 1


def test_a_family_of_answers_is_called_one(folder):
    """All answers may move: what refutes a count of rows is said to speak of answers."""
    done = run(*COUNT, "--pairs", "patterns")
    assert done.exit_code == 1
    assert "for neighbours that are query answers, all of which may move by at most 1" in (
        done.stdout
    )
    assert "rows" not in done.stdout
    assert "replace-one" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*EXTREMES, "--low", 0), "needs the domain of a row: --low LOW --high HIGH"),
        ((*EXTREMES, "--low", "a", "--high", 1), "--low takes numbers"),
        ((*EXTREMES, "--low", "nan", "--high", 1), "low must lie below high"),
        ((*EXTREMES, "--low", 1, "--high", 0), "low must lie below high"),
        ((*EXTREMES, "--low", 0, "--high", "1,1"), "low must lie below high"),
        (
            (*EXTREMES, "--low", 0, "--high", 1, "--rows", 0),
            "--rows must be an integer of 1 or more",
        ),
        ((*EXTREMES, "--low", 0, "--high", 1, "--answers", 2), "--answers belongs to a family"),
        ((*EXTREMES, "--low", 0, "--high", 1, "--relation", "answers"), "tables of rows"),
        ((*COUNT, "--pairs", "one below", "--low", 0), "--low belongs to --pairs extremes"),
        ((*COUNT, "--pairs", "pairs.json", "--rows", 3), "--rows belongs to --pairs extremes"),
        ((*COUNT, "--pairs", "patterns", "--relation", "replace-one"), "5 rows differ"),
    ],
)
def test_pairs_and_their_options_fit(folder, arguments, message):
    """An option that would be ignored, or ends that are none, are refused before anything runs."""
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "bound expected" not in done.stderr


def test_pairs_from_a_file_and_other_claims(folder):
    """Pairs come from JSON; rho and Renyi claims are understood."""
    shared = ("m.py:responses", "--batch", "--pairs", "pairs.json", "--samples", 5000)
    assert run(*shared, "--claim-rho", 0.1).exit_code == 1
    assert run(*shared, "--claim-epsilon", 5, "--claim-order", 2).exit_code == 0


@pytest.mark.slow
def test_a_program(folder):
    """A program is run as it is."""
    import sys

    done = run(
        f"{sys.executable} program.py",
        *("--command", "--pairs", "one below", "--samples", 400, "--claim-epsilon", 1),
    )
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("m.py:single",), "two things are missing: what is claimed"),
        (("m.py:single", "--claim-epsilon", 1, "--pairs", "none.json"), "no file none.json"),
        (
            ("m.py:single", "--claim-epsilon", 1, "--samples", 10, "--pairs", "one below"),
            "give at least",
        ),
        (("m.py:none", "--claim-epsilon", 1, "--pairs", "one below"), "defines no 'none'"),
    ],
)
def test_bad_use(folder, arguments, message):
    """Bad use exits 2 and says what to do."""
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.slow
def test_one_mechanism_of_the_zoo_is_judged_by_name(tmp_path):
    """A broken one is caught on its own pair, with a page; its options are its own."""
    named = ("zoo:NoisyHist2", "--samples", 9000, "--html", tmp_path / "page.html", "--json")
    done = run(*named)
    assert done.exit_code == 1, done.stderr
    assert json.loads(done.stdout)["verdict"] == "violated"
    assert "violated" in (tmp_path / "page.html").read_text()
    assert "leave out --pairs" in run("zoo:NoisyHist2", "--pairs", "patterns").stderr
    assert "no specimen 'NoisyHist'" in run("zoo:NoisyHist").stderr


def test_what_is_missing_is_told_at_once(folder):
    """The claim and the pairs in one message, each with its option."""
    shown = CliRunner().invoke(app, ["audit", f"{folder / 'count.py'}:right"])
    assert shown.exit_code == 2
    assert all(word in shown.stderr for word in ("--claim-epsilon", "--claim-rho", "--pairs"))
