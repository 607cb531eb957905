"""Output that cannot be written loses nothing, and nothing that is written loses a ledger."""

import ast
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.commands import ended
from typer.testing import CliRunner

import hushed as hs
from hushed._ground.whole_files import write_whole
from hushed.cli import app
from hushed.errors import LedgerUnavailable, NotFound, ParameterError
from hushed.plots._figures import is_figure, save_figure
from hushed.plots._ledgers import budget_over_time

G = hs.Guarantee
URL = "sqlite:///e.db"
FULL = Path("/dev/full")
MAIN = "import sys; from hushed.cli import main; sys.argv[0] = 'hushed'; main()"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A study: a function, private and public rows, a budget."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text("def mean(rows):\n    return rows.mean()\n")
    random = np.random.default_rng(0)
    for name, many in (("private", 30), ("public", 2000)):
        lines = "\n".join(f"{x:.9f}" for x in random.random(many))
        (tmp_path / f"{name}.csv").write_text(f"x\n{lines}\n")
    with hs.Ledger(URL) as book:
        book.open_budget("b", G(epsilon=2.0, gamma=0.3), note="Ωμ 東京")
    return tmp_path


RELEASE = [
    "release", "private.csv", "f.py:mean", "--population", "public.csv", "--gamma", "0.1",
    "--epsilon", "0.5", "--ledger", URL, "--budget", "b",
]  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


PLACE = str(Path(hs.__file__).parents[1])  # a relative path of packages is none in this folder


def process(*arguments, out=subprocess.PIPE, **environment):
    """The command in a process of its own, with an output of its own."""
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        stdout=out,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": PLACE, **environment},
        check=False,
    )


# What is printed


@pytest.mark.parametrize("extra", [[], ["--json"], ["--key", "mon day"]])
def test_a_full_device_loses_no_answer(folder, extra):
    """Exit code 2, no traceback, and the command that reads the answer again."""
    done = ended(*RELEASE, *extra, cwd=folder, stdout=FULL)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "standard output was not written: No space left on device" in done.stderr
    name = "'mon day'" if "--key" in extra else "1"
    assert f"read again at no cost by: hushed ledger answer {URL} b {name}\n" in done.stderr
    again = run("ledger", "answer", URL, "b", name.strip("'"))
    assert again.exit_code == 0
    assert again.stdout.startswith("released: ")
    with hs.Ledger(URL) as book:
        assert book.balance("b").entries == 1


@pytest.mark.slow
def test_a_broken_pipe_loses_no_answer():
    """Whoever was to read the answer is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = process(*RELEASE, out=writing)
    finally:
        os.close(writing)
    assert done.returncode == 2
    assert "Broken pipe; the answer is kept" in done.stderr


@pytest.mark.parametrize("arguments", [["charge", URL, "b", "--epsilon", "0.5"], ["show", URL]])
@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_other_commands_on_a_full_device(folder, arguments, extra):
    """A charge that was made is said to stand."""
    done = ended("ledger", *arguments, *extra, cwd=folder, stdout=FULL)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "was not written" in done.stderr
    assert ("the charge stands as entry 1" in done.stderr) == ("charge" in arguments)


@pytest.mark.slow
def test_an_error_on_a_full_device_keeps_its_exit_code():
    """The refusal was told on standard error; that its JSON is lost changes nothing."""
    with open("/dev/full", "w") as full:
        done = process("ledger", "charge", URL, "b", "--epsilon", "9", "--json", out=full)
    assert done.returncode == 1
    assert done.stderr.startswith("Overspent: ")
    assert "Traceback" not in done.stderr


CHARGE = ["ledger", "charge", URL, "b", "--epsilon", "0.25", "--note", "Ωμ", "--json"]


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-8"])
def test_a_console_that_cannot_show_a_sign_gets_its_code(folder, encoding):
    """Notes, keys and names are escaped where they cannot be shown, and nothing stops half way."""
    done = ended(*CHARGE, cwd=folder, encoding=encoding)
    assert (done.returncode, json.loads(done.stdout)["charged"]) == (0, 1)
    shown = ended("ledger", "show", URL, cwd=folder, encoding=encoding)
    assert shown.returncode == 0, shown.stderr
    assert ("Ωμ" if encoding == "utf-8" else "\\u03a9") in shown.stdout


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
def test_tables_and_help_are_shown_by_every_console(folder, encoding):
    """What rich draws, and our few signs beyond ASCII, are replaced or spelt out."""
    (folder / "noisy.py").write_text(
        "def noisy(rows, rng, size):\n    return sum(map(float, rows)) + rng.laplace(size=size)\n"
    )
    words = ("estimate", "noisy.py:noisy", "--epsilon", "0.5", "--batch", "--pairs", "extremes")
    words += ("--low", "0", "--high", "1", "--samples", "2000")
    for asked in (words, ("query", "--help"), ("--help",)):
        done = ended(*asked, cwd=folder, encoding=encoding)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) > 3
        assert "Traceback" not in done.stderr


def test_our_own_words_are_ascii():
    """Python prints them on any console; other signs stand in figures, and in one table."""
    package = Path(hs.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not text.isascii():
            tree = ast.parse(text)
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and not str(node.value).isascii():
                    found.add(path.relative_to(package).as_posix())
    assert found == {"cli/_estimating.py", "plots/_pricing.py", "_web/svg.py"}


@pytest.mark.slow
def test_a_process_with_such_a_console_does_the_same(folder):
    """Python itself opens standard output in the console's letters."""
    assert ended(*CHARGE, cwd=folder).returncode == 0
    shown = subprocess.run(
        [sys.executable, "-c", MAIN, "ledger", "show", URL],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": PLACE, "PYTHONIOENCODING": "cp1252"},
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert "\\u03a9" in shown.stdout.decode("cp1252")


# What is written over


def ledger_names():
    """The ledger under every name that a command could be given."""
    os.symlink("e.db", "link.svg")
    os.mkdir("sub")
    return ["e.db", "./sub/../e.db", "e.db-wal", "e.db-shm", "link.svg", os.path.abspath("e.db")]


@pytest.mark.slow
def test_no_option_writes_over_a_ledger(folder):
    """Not with --force, and not under another name: by content, not by what is on the line."""
    other = "sqlite:///other.db"
    run("ledger", "open", other, "b", "--epsilon", 2, "--gamma", 0.3)
    held = hs.Ledger(URL)
    held.charge("b", G(epsilon=0.25))
    names = ledger_names()
    before = {name: Path(name).read_bytes() for name in ("e.db", "e.db-wal")}
    elsewhere = [*RELEASE[:-3], other, *RELEASE[-2:]]
    for name in names:
        for line in (
            [*RELEASE, "--out", name, "--force"],
            [*RELEASE, "--html", name, "--force"],
            [*elsewhere, "--out", name, "--force"],
            ["ledger", "export", URL, "--out", name, "--force"],
            ["ledger", "export", other, "--out", name, "--force"],
            ["audit", "f.py:mean", "--claim-epsilon", 1, "--pairs", "extremes", "--low", 0,
             "--high", 1, "--html", name, "--force"],
            ["ledger", "backup", other, name],
        ):  # fmt: skip
            done = run(*line)
            assert done.exit_code == 2, (line, done.stdout)
            assert "name another file" in done.stderr, line
    for line in (
        ["ledger", "show", URL, "b", "--plot", "link.svg"],
        ["compose", "laplace:0.1x3", "--plot", "link.svg"],
        ["risk", "--epsilon0", 1, "--plot", "link.svg"],
    ):
        done = run(*line)
        assert done.exit_code == 2
        assert "link.svg is a ledger" in done.stderr, (line, done.stderr)
    for name, content in before.items():
        assert Path(name).read_bytes() == content
    with hs.Ledger(other) as book:
        assert book.balance("b").entries == 0
    held.close()
    with hs.Ledger(URL) as book:
        assert book.balance("b").entries == 1


def test_a_hard_link_is_not_written_over(folder):
    """Neither to a ledger nor to any other file."""
    os.link("e.db", "page.html")
    os.link("private.csv", "mine.json")
    for name in ("page.html", "mine.json"):
        refused = run("ledger", "export", "sqlite:///none.db", "--out", name, "--force")
        assert refused.exit_code == 2
        assert "name another file" in refused.stderr or "hard link" in refused.stderr
    os.unlink("page.html")
    with hs.Ledger(URL) as book:
        assert book.balance("b").entries == 0


def test_a_loop_of_links_is_no_place_to_write_to(folder):
    """It is refused in words by every command that writes, before anything is charged."""
    (folder / "one.svg").symlink_to("two.svg")
    (folder / "two.svg").symlink_to("one.svg")
    for words in [
        ("ledger", "backup", URL, "one.svg"),
        ("ledger", "export", URL, "--out", "one.svg", "--force"),
        ("ledger", "show", URL, "b", "--plot", "one.svg"),
        (*RELEASE, "--out", "one.svg", "--force"),
        (*RELEASE, "--html", "one.svg", "--force"),
    ]:
        refused = run(*words)
        assert refused.exit_code == 2
        assert "loop of links" in refused.stderr
    (folder / "away.json").symlink_to("made.json")  # leads to a file that can be made
    assert run("ledger", "export", URL, "--out", "away.json").exit_code == 0
    assert (folder / "made.json").is_file()
    with hs.Ledger(URL) as book:
        assert book.balance("b").entries == 0


@pytest.mark.slow
def test_pages_of_audits_replace_their_own_kind_alone(folder):
    """A former report goes without a question; anything else needs --force."""
    (folder / "m.py").write_text(
        "def noisy(rows, rng):\n    return rows.sum() + rng.laplace(0, 1)\n"
    )
    line = ["audit", "m.py:noisy", "--claim-epsilon", 1, "--pairs", "extremes", "--low", 0,
            "--high", 1, "--rows", 2, "--samples", 4000, "--html", "page.html"]  # fmt: skip
    (folder / "page.html").write_text("precious")
    refused = run(*line)
    assert refused.exit_code == 2
    assert "exists and is not an earlier audit report" in refused.stderr
    assert (folder / "page.html").read_text() == "precious"
    assert run(*line, "--force").exit_code in (0, 1)
    assert "<title>Audit: " in (folder / "page.html").read_text()
    assert run(*line).exit_code in (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_figures_replace_figures_alone(folder, suffix):
    """An old figure bears a mark; a photograph of the same kind does not."""
    path = folder / f"figure.{suffix}"
    path.write_bytes(b"\x89PNG\r\n\x1a\n precious <svg></svg>")
    refused = run("ledger", "show", URL, "b", "--plot", path)
    assert refused.exit_code == 2
    assert "exists and is not a figure of hushed" in refused.stderr
    assert b"precious" in path.read_bytes()
    path.unlink()
    for _ in range(2):
        assert run("ledger", "show", URL, "b", "--plot", path).exit_code == 0
        assert is_figure(path)


@pytest.mark.slow
def test_a_signed_picture_is_still_a_picture(folder):
    """The mark is a text of its own kind: other programs read the file as before."""
    import zlib
    from xml.etree import ElementTree as Xml

    with hs.Ledger(URL) as book:
        figure = budget_over_time(book.balance("b").budget, book.history("b"))
    Xml.parse(save_figure(figure, folder / "a.svg"))
    content = save_figure(figure, folder / "a.png").read_bytes()
    at, kinds = 8, []
    while at < len(content):
        size, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        body = content[at + 4 : at + 8 + size]
        assert zlib.crc32(body) == int.from_bytes(content[at + 8 + size : at + 12 + size], "big")
        kinds.append(kind)
        at += 12 + size
    assert (kinds[0], kinds[1], kinds[-1]) == (b"IHDR", b"tEXt", b"IEND")


def test_an_export_says_what_exists():
    """It is called no certificate."""
    assert run("ledger", "export", URL, "--out", "x.json").exit_code == 0
    refused = run("ledger", "export", URL, "--out", "x.json")
    assert refused.exit_code == 2
    assert "x.json exists; name another file, or say --force" in refused.stderr


# Backups and anchors


def test_a_backup_is_whole_while_the_ledger_is_in_use(folder):
    """What is still in the log is in it, which `cp` would leave out; nothing is written over."""
    held = hs.Ledger(URL)
    for _ in range(3):
        held.keep_answer("b", held.charge("b", G(epsilon=0.25)), "x")
    assert run("ledger", "backup", URL, "copy.db").exit_code == 0
    for target in ("copy.db", "f.py"):
        refused = run("ledger", "backup", URL, target)
        assert refused.exit_code == 2
    held.charge("b", G(epsilon=0.25))
    with hs.Ledger("sqlite:///copy.db", create=False) as copy:
        assert copy.balance("b").entries == 3
        assert copy.answer("b", 3) == "x"
        assert copy.verify("b") == held.entries("b")[2].digest[:32].join(["3:", ""])
    with pytest.raises(ParameterError, match="exists"):
        held.backup("copy.db")
    with pytest.raises(NotFound):
        held.backup("nowhere/copy.db")
    held.close()
    assert sorted(each.name for each in folder.glob("copy.db*")) == ["copy.db"]


def test_a_backup_of_a_lost_file_leaves_nothing(folder):
    """The ledger was deleted under its user: no empty copy stays behind."""
    held = hs.Ledger(URL)
    held.balance("b")
    (folder / "e.db").unlink()
    with pytest.raises(LedgerUnavailable):
        held.backup("copy.db")
    assert not (folder / "copy.db").exists()


@pytest.mark.slow
def test_a_server_is_not_copied_here(postgres_url):
    """It has tools of its own."""
    with hs.Ledger(postgres_url) as book, pytest.raises(ParameterError, match="pg_dump"):
        book.backup("copy.db")


def rolled_back(folder):
    (folder / "e.db").unlink()
    os.rename("old.db", "e.db")


def rewritten(folder):
    (folder / "e.db").unlink()
    with hs.Ledger(URL) as book:
        book.open_budget("b", G(epsilon=2.0, gamma=0.3), note="Ωμ 東京")
        for _ in range(5):
            book.charge("b", G(epsilon=0.001))


@pytest.mark.slow
@pytest.mark.parametrize("attack", [rolled_back, rewritten])
def test_a_rollback_is_noticed_by_what_was_written_down(folder, attack):
    """The chain of a rolled back or rewritten ledger is whole; the anchor does not fit."""
    with hs.Ledger(URL) as book:
        book.charge("b", G(epsilon=0.25))
        book.backup("old.db")
        for _ in range(3):
            book.charge("b", G(epsilon=0.25))
    (head,) = json.loads(run("ledger", "verify", URL, "--json").stdout)["heads"].values()
    assert head.startswith("4:")
    shown = run("ledger", "show", URL, "b")
    assert f"Keep this outside the ledger, to notice lost entries: {head}\n" in shown.stdout
    assert run("ledger", "verify", URL, "b", "--expect", head).exit_code == 0
    with hs.Ledger(URL) as book:  # what comes later does not matter
        book.charge("b", G(epsilon=0.25))
    assert run("ledger", "verify", URL, "b", "--expect", head).exit_code == 0
    attack(folder)
    assert run("ledger", "verify", URL, "b").exit_code == 0
    found = run("ledger", "verify", URL, "b", "--expect", head)
    assert found.exit_code == 1
    assert "DamagedLedger" in found.stderr


@pytest.mark.parametrize("text", ["", "4", "4:xyz", "4:abc", "-1:" + "0" * 32, "4:" + "0" * 65])
def test_anchors_are_checked(text):
    """A wrong form is bad use, and no verdict."""
    refused = run("ledger", "verify", URL, "b", f"--expect={text}")
    assert refused.exit_code == 2
    assert "NUMBER:DIGEST" in refused.stderr
    assert run("ledger", "verify", URL, "--expect", "0:" + "0" * 32).exit_code == 2
    assert run("ledger", "verify", URL, "b", "--expect", "0:" + "0" * 32).exit_code == 1


# Passwords


SECRET = "Hemlig/Kod"


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://u:se@{SECRET}@127.0.0.1:1/db",
        f"postgresql://u:{SECRET}/db",
        f"postgresql://u:{SECRET}@127.0.0.1:1/db",
        f"postgresql://127.0.0.1:1/db?user=u&password={SECRET}",
        f"postgresql://u@{SECRET}@127.0.0.1/db",
        "postgresql://u:Hemlig%2FKod@nowhere.invalid/db",
        f"postgresql://u:{SECRET}@127.0.0.1:1/db?nonsense={SECRET}",
    ],
)
def test_no_message_shows_a_password(address):
    """However the address is misspelt: not whole, not in part, not in a cause."""
    with pytest.raises((ParameterError, LedgerUnavailable)) as caught:
        hs.Ledger(address, timeout=2.0)
    error = caught.value
    told = f"{error} {error.__cause__} {'' if error.__suppress_context__ else error.__context__}"
    assert not any(part in told for part in ("Hemlig", "Kod", "se@"))
    shown = run("ledger", "show", address)
    assert "Hemlig" not in shown.stderr + shown.stdout
    assert "Kod" not in shown.stderr + shown.stdout


def test_an_at_in_a_password_is_explained():
    """The classic slip: what to write instead."""
    with pytest.raises(ParameterError, match="%40"):
        hs.Ledger("postgresql://u:one@two@host/db")


@contextlib.contextmanager
def little_room(most):
    """Let no file grow beyond so many bytes, as on a full disk."""
    handled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handled)


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("option", ["--html", "--out"])
def test_a_file_of_an_answer_that_cannot_be_written(folder, option):
    """The answer was printed, and the error says how to read it again."""
    (folder / "page").symlink_to(FULL)
    done = run(*RELEASE, option, "page", "--force")
    assert done.exit_code == 2
    assert "OSError: page cannot be written: No space left on device; the answer is kept" in (
        done.stderr
    )
    words = done.stderr.partition("at no cost by: hushed ")[2].split()
    assert run(*words).stdout.split("\n")[0] in done.stdout


def test_a_file_of_a_query_that_cannot_be_written(folder):
    """As for a release, where an earlier file is replaced; that one stays."""
    opened = run("ledger", "open", URL, "rows", "--epsilon", "2", "--neighbours", "add-remove")
    assert opened.exit_code == 0
    words = ["query", "private.csv", "--type", "x=float", "--histogram", "x:0:1:3000"]
    words += ["--epsilon", "1", "--ledger", URL, "--budget", "rows", "--force", "--out", "a.csv"]
    (folder / "a.csv").write_text("before")
    with little_room(90_000):
        done = run(*words)
    assert done.exit_code == 2, done.stderr
    assert "a.csv cannot be written: File too large; the answer is kept, and read" in done.stderr
    assert (folder / "a.csv").read_text() == "before"


def test_a_file_is_replaced_whole_or_not_at_all(folder):
    """Whatever was there before stays until all is written; links and rights stay, too."""
    (folder / "real").write_text("before")
    (folder / "real").chmod(0o640)
    (folder / "link").symlink_to("real")
    for target in ("real", "link", "new"):
        words = f"{target} cannot be written: File too large"  # the file, and none of ours
        with little_room(40), pytest.raises(OSError, match=re.escape(words)):
            write_whole(target, "x" * 41)
    assert (folder / "real").read_text() == "before"
    assert not {each.name for each in folder.iterdir()} & {"new", ".real"}
    assert not [each for each in folder.iterdir() if each.name.startswith(".")]
    write_whole("link", b"after")
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_text() == "after"
    assert (folder / "real").stat().st_mode & 0o777 == 0o640
    if os.getuid() == 0:
        os.chown(folder / "real", 1, 1)
        write_whole("real", b"again")
        assert ((folder / "real").stat().st_uid, (folder / "real").stat().st_gid) == (1, 1)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="needs /dev/stdout")
def test_what_is_written_to_standard_output_stands_between_what_is_printed(folder):
    """As a file it was replaced under the shell's feet, and as a pipe it was not found."""
    code = (
        "from hushed._ground.whole_files import write_whole\n"
        "print('first')\nwrite_whole('/dev/stdout', 'certificate\\n')\n"
        "print('last', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "first\ncertificate\nlast\n"
    with (folder / "out").open("a") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (folder / "out").read_text() == done.stdout


def test_a_file_that_cannot_be_replaced_is_written(folder, monkeypatch):
    """One that is mounted by itself, or another owner's in a common folder; names may be long."""
    name = "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 84  # 252 bytes
    write_whole(name, "one")
    write_whole(name, "two")

    def refuse(self, target):
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", refuse)
    write_whole(name, "three")
    assert (folder / name).read_text() == "three"
    assert [each.name for each in folder.iterdir() if each.name.startswith(".")] == []


@pytest.mark.slow_cases(".html")
@pytest.mark.parametrize("suffix", [".svg", ".png", ".html"])
def test_a_figure_is_replaced_whole_or_not_at_all(folder, suffix):
    """The figure before stays, and is known as one."""
    pytest.importorskip("altair")
    with hs.Ledger(URL) as book:
        figure = hs.plots.budget_figure(book, "b")
    place = save_figure(figure, folder / f"f{suffix}")
    before = place.read_bytes()
    with little_room(1000), pytest.raises(OSError, match="File too large"):
        save_figure(figure, place)
    assert place.read_bytes() == before
    assert is_figure(place)


def test_an_export_before_is_not_lost(folder):
    """Where there is no room for the new one."""
    assert run("ledger", "export", URL, "--out", "e.json").exit_code == 0
    before = (folder / "e.json").read_text()
    with hs.Ledger(URL) as book:
        for _ in range(20):
            book.charge("b", G(epsilon=0.01), "n" * 10_000)
    with little_room(150_000):
        done = run("ledger", "export", URL, "--out", "e.json", "--force")
    assert done.exit_code == 2
    assert "File too large" in done.stderr
    assert (folder / "e.json").read_text() == before


@pytest.mark.parametrize("most", [10, 115])
def test_half_a_pair_of_keys_is_not_left(folder, most):
    """It would be in the way of the next try, and look like a key."""
    pytest.importorskip("cryptography")
    with little_room(most):
        assert run("keys", "new", "k").exit_code == 2
    assert not list(folder.glob("k*"))
    assert run("keys", "new", "k").exit_code == 0
