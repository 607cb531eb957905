"""The commands certify, study, report, keys, and verify of what they write."""

import json
import os
import re
import shlex

import numpy as np
import pytest
from tests.commands import ended

import hushed as hs
import hushed.statements
from hushed.errors import ParameterError
from hushed.tables._format import list_lines

LEDGER = ("--ledger", "sqlite:///l.db", "--budget", "clinic")


@pytest.fixture
def folder(tmp_path):
    """Give a folder with rows, and a ledger that has paid for a count and a mean."""
    (tmp_path / "rows.csv").write_text("cost\n" + "".join(f"{i % 50}\n" for i in range(300)))
    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as book:
        book.open_budget("clinic", hs.Guarantee(epsilon=3, neighbours="add-remove"))
        rows = hs.table(str(tmp_path / "rows.csv"), types={"cost": "float"})
        rows.count().release(epsilon=1, ledger=book, budget="clinic")
        query = rows.mean("cost", low=0, high=50)
        answer = query.release(epsilon=1, ledger=book, budget="clinic", key="mean")
        answer.to_csv(tmp_path / "mean.csv")
        (tmp_path / "mean.json").write_text(answer.to_json())
    return tmp_path


def run(folder, *words):
    return ended(*words, cwd=folder)


def test_an_entry_is_certified_and_verified_with_its_ledger(folder):
    """By number and by key; the page holds the certificate, and prints none of its data."""
    files = ("--out", "c.json", "--html", "c.html")
    done = run(folder, "certify", *LEDGER, "--entry", "1", "--data", "Clinic", *files, "--json")
    assert done.returncode == 0, done.stderr
    known = hs.Statement.from_json((folder / "c.json").read_text())
    assert json.loads(done.stdout)["digest"] == known.digest
    assert known.entry.number == 1
    page = (folder / "c.html").read_text()
    assert known.digest in page
    assert re.search(r"@media print \{[^@]*\.file(, [.\w]+)* \{ display: none; \}", page, re.S)
    checked = run(folder, "verify", "c.json", "--ledger", "sqlite:///l.db")
    assert checked.returncode == 0
    assert "the ledger has what was charged" in checked.stdout
    again = run(folder, "certify", *LEDGER, "--entry", "mean", *files)
    assert again.returncode == 0  # an earlier certificate is replaced
    assert hs.Statement.from_json((folder / "c.json").read_text()).entry.number == 2


def test_a_file_of_an_answer_is_certified_without_a_ledger(folder):
    """As query --out writes it."""
    done = run(folder, "certify", "mean.json", "--actor", "Ada")
    assert done.returncode == 0, done.stderr
    assert "released by: Ada" in done.stdout
    assert "What an outsider could still learn" in done.stdout


def test_a_changed_certificate_is_no_certificate(folder):
    """Both it and another ledger end with 1; what is no certificate at all with 2."""
    run(folder, "certify", *LEDGER, "--entry", "1", "--out", "c.json")
    (folder / "d.json").write_text((folder / "c.json").read_text().replace("0.95", "0.99"))
    done = run(folder, "verify", "d.json", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] == "does-not-hold"
    assert "the certificate does not hold: " in done.stderr
    (folder / "e.json").write_text((folder / "c.json").read_text()[:-100])
    done = run(folder, "verify", "e.json", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (2, "bad-use")
    with hs.Ledger(f"sqlite:///{folder / 'other.db'}") as book:
        book.open_budget("clinic", hs.Guarantee(epsilon=3, neighbours="add-remove"))
    found = run(folder, "verify", "c.json", "--ledger", "sqlite:///other.db")
    assert found.returncode == 1
    assert "does not have the charge" in found.stdout


@pytest.mark.slow
def test_a_report_lists_a_budget_and_a_study_adds_up(folder):
    """One page for everything that was released; and the promise of chosen releases together."""
    done = run(folder, "report", "sqlite:///l.db", "clinic", "--html", "r.html", "--out", "r.json")
    assert done.returncode == 0, done.stderr
    assert "no answer is stored" not in done.stdout
    assert "Certificate of all releases under a budget" in (folder / "r.html").read_text()
    assert run(folder, "verify", "r.json", "--ledger", "sqlite:///l.db").returncode == 0
    for number in ("1", "2"):
        run(folder, "certify", *LEDGER, "--entry", number, "--out", f"{number}.json")
    done = run(folder, "study", "1.json", "2.json", "--delta", "0", "--out", "s.json", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["guarantee"]["epsilon"] == 2
    assert run(folder, "verify", "s.json").returncode == 0


@pytest.mark.slow
def test_a_report_tells_the_numbers_of_groups(folder):
    """As many as have room on a line, the columns first."""
    with hs.Ledger(f"sqlite:///{folder / 'l.db'}") as book:
        rows = hs.table(str(folder / "rows.csv"), types={"cost": "int"})
        asked = rows.group_by("cost", keys=[1, 2]).count()
        answer = asked.release(epsilon=0.5, ledger=book, budget="clinic")
    done = run(folder, "report", "sqlite:///l.db", "clinic")
    first = answer.values["count"][0]
    assert re.search(rf"2 groups, cost, count[^:]*: 1 {first} ", done.stdout)


def test_a_report_cuts_no_number(folder):
    """Its first digits would be another number."""
    with hs.Ledger(f"sqlite:///{folder / 'l.db'}") as book:
        rows = hs.table(str(folder / "rows.csv"), types={"cost": "int"})
        asked = rows.group_by("cost", keys=list(range(400))).count()
        answer = asked.release(epsilon=0.5, ledger=book, budget="clinic")
        told = hs.certify_budget(book, "clinic").explain()
    (line,) = (each for each in told.split("\n") if "400 groups" in each)
    shown = line.partition("400 groups, cost, count: ")[2]
    first = "; ".join(" ".join(each) for each in list_lines(answer)[1:41])
    assert shown == f"{first}; 360 more are in the file"


def test_a_certificate_is_no_answer_and_the_command_that_is_named_takes_it(folder):
    """From any folder, with blanks in its name, and signed."""
    (folder / "a b").mkdir()
    run(folder, "keys", "new", "k.key")
    files = ("--out", "a b/c d.json", "--sign", "k.key")
    assert run(folder, "certify", *LEDGER, "--entry", "1", *files).returncode == 0
    done = run(folder, "certify", "a b/c d.json")
    assert done.returncode == 2
    named = re.search(r"hushed (verify .*PAGE) checks", done.stderr)[1]
    words = [{"KEY.pub": "k.key.pub", "PAGE": "p.html"}.get(w, w) for w in shlex.split(named)]
    assert run(folder, *words).returncode == 0
    assert (folder / "p.html").exists()


def test_keys_are_made_once_and_sign(folder):
    """The private file is for its owner alone, neither is written over, and verify --key trusts."""
    made = run(folder, "keys", "new", "k")
    assert made.returncode == 0, made.stderr
    if os.name == "posix":
        assert (folder / "k").stat().st_mode & 0o777 == 0o600
    assert run(folder, "keys", "new", "k").returncode == 2
    name = run(folder, "keys", "show", "k.pub").stdout.splitlines()[0]
    assert name == made.stdout.strip() == run(folder, "keys", "show", "k").stdout.splitlines()[0]
    assert "PRIVATE" not in run(folder, "keys", "show", "k").stdout
    run(folder, "certify", "mean.json", "--out", "c.json", "--sign", "k")
    assert run(folder, "verify", "c.json", "--key", "k.pub").returncode == 0
    assert run(folder, "certify", "mean.json", "--out", "c.json").returncode == 0
    assert run(folder, "verify", "c.json", "--key", "k.pub").returncode == 2


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="only there files tell who may read them")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o602])
def test_a_private_key_that_others_may_read_is_remarked_on(folder, mode):
    """It signs all the same; the public key is for everybody."""
    assert run(folder, "keys", "new", "open").returncode == 0
    assert "chmod" not in run(folder, "keys", "show", "open").stderr
    (folder / "open").chmod(mode)
    signed = run(folder, "certify", "mean.json", "--out", "open.json", "--sign", "open")
    assert signed.returncode == 0
    assert "chmod 600 open" in signed.stderr
    assert "chmod" not in run(folder, "keys", "show", "open.pub").stderr
    for each in ("open", "open.pub"):
        (folder / each).unlink()


REFUSED = [
    (("certify",), "all three"),
    (("certify", "mean.json", *LEDGER, "--entry", "1"), "all three"),
    (("certify", *LEDGER), "all three"),
    (("certify", "rows.csv"), "not JSON"),
    (("certify", "none.json"), "there is no file"),
    (("certify", *LEDGER, "--entry", "9"), "no answer is stored"),
    (("certify", "mean.json", "--sign", "l.db"), "--out"),
    (("certify", "mean.json", "--out", "rows.csv"), "--force"),
    (("certify", "mean.json", "--out", "l.db", "--force"), "ledger"),
    (("certify", "mean.json", "--out", "own.key", "--force"), "is a private key"),
    (("verify", "mean.json"), "hushed certify writes one"),
    (("study", "mean.json"), "mean.json: this is no hushed statement"),
    (("study", "rows.csv"), "not JSON"),
    (("report", "sqlite:///l.db", "nobody"), "no budget"),
    (("keys", "new", "none/k"), "no folder"),
    (("keys", "show", "rows.csv"), "no public"),
]


def test_a_signed_certificate_has_a_page_that_says_who_signed_it(folder):
    """With the key the signature is checked; without, the page says that nobody looked."""
    assert run(folder, "keys", "new", "own").returncode == 0
    run(folder, "certify", "mean.json", "--out", "c.json", "--sign", "own")
    name = hs.statements.key_id((folder / "own.pub").read_bytes())
    for options, said in (
        ((), f"key {name}, as the file says; the signature was not checked"),
        (("--key", "own.pub"), f"key {name}; the signature was checked"),
    ):
        done = run(folder, "verify", "c.json", *options, "--html", "c.html")
        assert done.returncode == 0, done.stderr
        assert said in (page := (folder / "c.html").read_text())
        assert "payloadType" in page  # the envelope, so that the page can be checked, too
    (folder / "c.html").write_text("mine")
    done = run(folder, "verify", "c.json", "--html", "c.html")
    assert (done.returncode, (folder / "c.html").read_text()) == (2, "mine")
    done = run(folder, "verify", "c.json", "--html", "c.html", "--force")
    assert done.returncode == 0, done.stderr
    done = run(folder, "certify", "c.json", "--html", "d.html")
    assert "hushed verify c.json --key KEY.pub --html PAGE" in done.stderr
    signed = (folder / "c.json").read_text()
    with pytest.raises(ParameterError, match="open_signed reads it with the public key"):
        hs.Statement.from_json(signed)
    run(folder, "keys", "new", "other")
    done = run(folder, "verify", "c.json", "--key", "other.pub", "--html", "e.html")
    assert (done.returncode, (folder / "e.html").exists()) == (1, False)


@pytest.mark.slow
def test_bad_uses_are_refused_and_write_nothing(folder):
    """Each with what to do."""
    (folder / "own.key").write_text("-----BEGIN PRIVATE KEY-----\n")
    before = {each.name for each in folder.iterdir()}
    for words, said in REFUSED:
        done = run(folder, *words)
        assert done.returncode in (1, 2), words
        assert said in done.stderr, done.stderr
    left = {each.name for each in folder.iterdir() if not each.name.startswith("l.db-")}
    assert left - {"standard-error", "standard-output"} == before


def test_a_study_of_a_plain_certificate_says_how_to_make_a_statement(folder):
    """Both are called certificates; the message names the file and the function."""
    rule = hs.proven_sensitivity(0.1, argument="a mean of 10 values in [0, 1]")
    released = hs.release(np.mean, np.linspace(0, 1, 10), hs.Laplace(rule, epsilon=1.0))
    (folder / "gini.json").write_text(released.certificate.to_json())
    told = run(folder, "study", "gini.json")
    assert told.returncode == 2
    assert "gini.json: this is no hushed statement" in told.stderr
    assert "hs.certify(released)" in told.stderr
    with pytest.raises(ParameterError, match=r"the release itself, not its \.certificate"):
        hs.certify_study([released.certificate])
