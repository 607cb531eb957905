"""The ledger's file is the file: never dropped locks, never two logs, never another file."""

import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

import hushed as hs
from hushed.errors import (
    DamagedLedger,
    LedgerUnavailable,
    NotALedger,
    NotFound,
    Overspent,
    ParameterError,
)
from hushed.ledger import _accounts as accounts
from hushed.ledger import _requests as requests
from hushed.ledger._answers import empty_answer
from hushed.ledger._entries import write_entry
from hushed.ledger._files import check_place, is_ledger
from hushed.ledger._forks import connect_file
from hushed.ledger._migrations import answers_that_end
from hushed.ledger._rows import run
from hushed.ledger._together import writing
from hushed.privacy_loss import PrivacyProfile
from hushed.privacy_loss._composed import ComposedPLD

G = hs.Guarantee
TENTH = G(epsilon=0.125)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def book(path):
    with hs.Ledger(f"sqlite:///{path}") as found:
        found.open_budget("b", G(epsilon=1.0))
        yield found


def script(text, *arguments, **options):
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def entries(path, name="b"):
    with hs.Ledger(f"sqlite:///{path}", create=False) as found:
        return len(found.entries(name))


# Locks that are dropped

NOTEBOOK = """
    import os, shutil, subprocess, sys
    import hushed as hs
    from hushed.errors import LedgerUnavailable

    path, how = sys.argv[1:]
    url, small = f"sqlite:///{path}", hs.Guarantee(epsilon=1 / 64)
    ledger = hs.Ledger(url)
    ledger.open_budget("b", hs.Guarantee(epsilon=1.0))
    ledger.charge("b", small)
    if how == "second":
        kept, ledger = ledger, hs.Ledger(url)
    elif how == "in and out":
        with hs.Ledger(url) as other:
            other.balance("b")
    elif how == "is it one":
        from hushed.ledger._files import is_ledger
        assert is_ledger(__import__("pathlib").Path(path))
    elif how == "copy":
        shutil.copy(path, path + ".copy")
    look = "import sys, hushed as hs; hs.Ledger(sys.argv[1], create=False).balance('b')"
    subprocess.run([sys.executable, "-c", look, url], check=True)
    told = 1
    for _ in range(8):
        try:
            ledger.charge("b", small)
            told += 1
        except LedgerUnavailable as problem:
            print(problem, file=sys.stderr)
    print(told, flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.slow_cases("one", "second")
@pytest.mark.parametrize(
    "how",
    [
        *("one", "second", "copy"),
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("in and out", "is it one")),
    ],
)
def test_no_charge_vanishes_when_a_colleague_looks(path, how):
    """Another process opens and closes the ledger; this one charges, and is killed."""
    done = script(NOTEBOOK, path, how)
    assert done.returncode == -9, done.stderr
    told = int(done.stdout)
    assert entries(path) == told
    # A copy made by other means than SQLite drops the locks: noticed once, then opened anew.
    assert told == (8 if how == "copy" else 9)
    assert ("lost its write-ahead log" in done.stderr) == (how == "copy")


# Files that are not the one that was opened


def test_a_replaced_file_is_refused_even_by_a_full_copy(book, path, tmp_path):
    """The service that has it open charges nothing more; whoever opens it anew goes on."""
    book.charge("b", TENTH)
    copy = tmp_path / "copy.db"
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close()
    target.close()
    os.replace(copy, path)
    for ask in (lambda: book.charge("b", TENTH), lambda: book.balance("b")):
        with pytest.raises(LedgerUnavailable, match="was replaced by another one"):
            ask()
    with hs.Ledger(f"sqlite:///{path}") as fresh:
        assert fresh.charge("b", TENTH).number == 2


@pytest.mark.parametrize("both", [True, False])
def test_a_deleted_file_is_refused(book, path, both):
    """With its log or without; nothing is made in its place."""
    entry = book.charge("b", TENTH)
    for name in [path.name, path.name + "-wal"][: 2 if both else 1]:
        path.with_name(name).unlink()
    for ask in (
        lambda: book.charge("b", TENTH),
        lambda: book.keep_answer("b", entry, "x"),
        lambda: book.open_budget("c", G(epsilon=1.0)),
        lambda: book.entries("b"),
    ):
        with pytest.raises(LedgerUnavailable, match="was deleted"):
            ask()
    assert not path.exists()


def test_a_renamed_file_is_told_as_one_that_can_be_put_back(book, path):
    """Its last charges stand in the log, which has the old name: then none of them is lost."""
    book.charge("b", TENTH)
    path.rename(path.with_name("renamed.db"))
    for ask in (lambda: book.charge("b", TENTH), lambda: book.balance("b")):
        with pytest.raises(LedgerUnavailable, match="renamed or moved"):
            ask()
    path.with_name("renamed.db").rename(path)
    assert book.charge("b", TENTH).number == 2
    with hs.Ledger(f"sqlite:///{path}") as fresh:
        assert fresh.balance("b").entries == 2


@pytest.mark.slow
def test_an_entry_has_a_largest_size(book):
    """What names very many estimates is refused; a very long law is charged by its promise."""
    names = tuple((f"{place}" + "n" * 10_000, 0.0) for place in range(210))
    with pytest.raises(ParameterError, match="at most 2,000,000 characters"):
        book.charge("b", G(epsilon=0.125, estimates=names))
    assert book.balance("b").entries == 0
    parts = [hs.privacy_loss.laplace(2.0**-30 * (1 + k / 2**15)) for k in range(17_000)]
    law = PrivacyProfile(ComposedPLD(tuple((each.parts[0][0], 1) for each in parts)))
    entry = book.charge("b", TENTH, loss=law)
    assert entry.law is None
    assert len(write_entry(entry)) < 1000


def test_a_file_moved_behind_a_link_is_refused(book, path):
    """Whoever opens it through the link has another log, and would spend the same budget again."""
    book.charge("b", TENTH)
    path.rename(path.with_name("moved.db"))
    path.symlink_to(path.with_name("moved.db"))
    for ask in (lambda: book.charge("b", TENTH), lambda: book.balance("b")):
        with pytest.raises(LedgerUnavailable, match="was replaced by another one"):
            ask()


def test_a_folder_in_its_place_is_another_one(book, path):
    """It is told as what it is, and not as a file with several names."""
    path.unlink()
    path.mkdir()
    with pytest.raises(LedgerUnavailable, match="was replaced by another one"):
        book.charge("b", TENTH)


@pytest.mark.parametrize("replaced", [True, False])
def test_a_log_that_is_gone_is_noticed(book, path, replaced):
    """Charges would go into a file without a name, also where a copy lies in its place."""
    book.charge("b", TENTH)
    log, elsewhere = path.with_name(path.name + "-wal"), path.with_name("elsewhere")
    log.rename(elsewhere)
    if replaced:
        shutil.copy(elsewhere, log)
    with pytest.raises(LedgerUnavailable, match="lost its write-ahead log"):
        book.charge("b", TENTH)


OPENED = """
    import sqlite3, sys
    found = sqlite3.connect(sys.argv[1])
    assert found.execute("SELECT entries FROM hushed_heads").fetchone()
    print("open", flush=True)
    input()
"""


@contextlib.contextmanager
def a_colleague(path):
    """Let another process keep the file open; it makes an index where there is none."""
    command = [sys.executable, "-S", "-c", textwrap.dedent(OPENED), str(path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline() == "open\n"
        yield
        process.communicate("\n")


@pytest.mark.parametrize("handle", ["before", "after"])
@pytest.mark.parametrize("made", ["gone", "by a colleague", "by hand"])
def test_an_index_that_is_gone_is_noticed(book, path, made, handle):
    """Whoever opens the file then makes a new one, and neither sees the other's locks and charges.

    SQLite has one index for all of a process: a handle of later uses the one that is gone, too.
    """
    book.charge("b", TENTH)
    index = path.with_name("budget.db-shm")
    content = index.read_bytes()
    index.unlink()
    with contextlib.ExitStack() as stack:
        if made == "by a colleague":
            stack.enter_context(a_colleague(path))
        elif made == "by hand":
            index.write_bytes(content)
        if handle == "after":
            with pytest.raises(LedgerUnavailable, match="lost the index of its log"):
                hs.Ledger(f"sqlite:///{path}", create=False)
        with pytest.raises(LedgerUnavailable, match="lost the index of its log") as caught:
            book.charge("b", TENTH)
        assert "Nothing was charged" in str(caught.value)
        with hs.Ledger(f"sqlite:///{path}", create=False) as later:
            assert later.charge("b", TENTH).number == 2
        assert book.charge("b", TENTH).number == 3
    assert entries(path) == 3


LATER = """
    import sys, hushed as hs
    with hs.Ledger(sys.argv[1], create=False) as found:
        found.charge("b", hs.Guarantee(epsilon=0.5))
        print("charged", flush=True)
        input()
"""


@pytest.mark.slow
def test_no_charge_is_lost_with_the_index(book, path):
    """The charge of a process that has opened the file since stays."""
    book.charge("b", TENTH)
    path.with_name("budget.db-shm").unlink()
    command = [sys.executable, "-c", textwrap.dedent(LATER), f"sqlite:///{path}"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline() == "charged\n"
        with pytest.raises(LedgerUnavailable, match="lost the index of its log"):
            book.charge("b", TENTH)
        with pytest.raises(Overspent):
            book.charge("b", G(epsilon=0.5))
        process.communicate("\n")
    assert [each.guarantee.epsilon for each in book.entries("b")] == [0.125, 0.5]


def test_a_file_replaced_between_check_and_commit_is_told(book, path, tmp_path, monkeypatch):
    """The charge may be in a file that nobody sees: it must not be relied on."""
    shutil.copy(path, tmp_path / "other.db")
    append = accounts.rows.append

    def replaced(connection, entry, body):
        append(connection, entry, body)
        os.replace(tmp_path / "other.db", path)

    monkeypatch.setattr(accounts.rows, "append", replaced)
    with pytest.raises(LedgerUnavailable, match="do not release"):
        book.charge("b", TENTH)


@pytest.mark.parametrize("beside", ["budget.db", "budget.db-wal"])
def test_a_place_that_cannot_be_written_is_told_with_what_it_needs(path, tmp_path, beside):
    """SQLite says no more than that it is unable to open; we say what has to be writable."""
    if beside.endswith("-wal"):
        hs.Ledger(f"sqlite:///{path}").close()
        path.with_name(beside).mkdir()
    else:
        tmp_path.chmod(0o500)  # the superuser may write everywhere but in a folder of the system
        path = Path("/proc/budget.db") if os.geteuid() == 0 else path
    with pytest.raises(LedgerUnavailable, match="write the file and the folder"):
        hs.Ledger(f"sqlite:///{path}")
    tmp_path.chmod(0o700)


def test_hard_links_are_refused(book, path, tmp_path):
    """Two names are two logs: neither name works while both are there."""
    book.charge("b", TENTH)
    other = tmp_path / "folder"
    other.mkdir()
    os.link(path, other / "same.db")
    with pytest.raises(LedgerUnavailable, match="hard links"):
        book.charge("b", TENTH)
    for each in (path, other / "same.db"):
        with pytest.raises(LedgerUnavailable, match="hard links"):
            hs.Ledger(f"sqlite:///{each}")
    (other / "same.db").unlink()
    assert book.charge("b", TENTH).number == 2


def test_symbolic_links_are_followed_once(book, path, tmp_path):
    """A link is the file it leads to, log and all; one that is turned later changes nothing."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.db").symlink_to(path)
    with hs.Ledger(f"sqlite:///{folder}/link.db") as other:
        for each in (other, book, other, book):
            each.charge("b", G(epsilon=0.25))
        with pytest.raises(Overspent):
            other.charge("b", G(epsilon=0.25))
        (folder / "link.db").unlink()
        (folder / "link.db").symlink_to(tmp_path / "nothing.db")
        assert other.balance("b").entries == 4
    assert [each.name for each in folder.iterdir()] == ["link.db"]


def test_a_loop_of_links_is_no_ledger(tmp_path):
    """Told in words of this library."""
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises((LedgerUnavailable, NotALedger)):
        hs.Ledger(f"sqlite:///{tmp_path}/a.db")
    assert not is_ledger(tmp_path / "a.db")


def test_a_file_mounted_alone_is_refused(tmp_path):
    """Its log would lie beside the mount point; a mounted folder is fine."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "36 35 98:0 / / rw,noatime - ext4 /dev/root rw\n"
        "40 36 98:0 /srv/b.db /data/my\\040b.db rw,noatime - ext4 /dev/root rw\n"
    )
    with pytest.raises(LedgerUnavailable, match="mount the folder"):
        check_place(Path("/data/my b.db"), mounts)
    check_place(Path("/data/b.db"), mounts)
    check_place(Path("/data/b.db"), tmp_path / "nothing")


def test_a_copy_by_another_process_is_no_ledger_of_its_own_making(book, path, tmp_path):
    """`cp` of an open ledger may lack what is in the log; the ledger itself loses nothing."""
    for _ in range(4):
        book.charge("b", TENTH)
    subprocess.run(["cp", str(path), str(tmp_path / "copy.db")], check=True)
    for _ in range(4):
        book.charge("b", TENTH)
    assert entries(path) == 8
    with pytest.raises(Overspent):
        book.charge("b", TENTH)


# Paths


@pytest.mark.parametrize("name", ["a%41b.db", "wh?t.db", "sh#rp.db", "a b.db", "ü&.db", "a%.db"])
def test_paths_are_taken_literally(tmp_path, name):
    """No character of a file's name means another file, and foreign ones are left alone."""
    foreign = tmp_path / "aAb.db"
    with sqlite3.connect(foreign) as found:
        found.execute("CREATE TABLE patients (name TEXT)")
    found.close()
    before = foreign.read_bytes()
    with hs.Ledger(f"sqlite:///{tmp_path}/{name}") as book:
        book.open_budget("b", G(epsilon=1.0))
        book.charge("b", TENTH)
        assert {each.name for each in tmp_path.iterdir()} == {
            "aAb.db",
            name,
            f"{name}-wal",
            f"{name}-shm",
        }
    assert entries(tmp_path / name) == 1
    assert foreign.read_bytes() == before
    assert is_ledger(tmp_path / name)


@pytest.mark.parametrize("address", ["a.db?mode=ro", "a.db?timeout=5&uri=true", "nul\0.db"])
def test_options_in_an_address_are_refused(tmp_path, address):
    """Rather than taken for a part of the name, which would be another ledger."""
    with pytest.raises(ParameterError, match="address"):
        hs.Ledger(f"sqlite:///{tmp_path}/{address}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (None, ParameterError),
        (Path("a.db"), ParameterError),
        (b"sqlite:///a.db", ParameterError),
        ("sqlite:///~nobody-of-this-name/a.db", NotFound),
        ("sqlite:///" + "x" * 300, (LedgerUnavailable, NotFound)),
        ("sqlite:///" + "x/" * 3000, NotFound),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_what_is_no_address_is_refused_in_words(tmp_path, monkeypatch, address, problem, create):
    """No error of the operating system or of Python comes through."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(problem):
        hs.Ledger(address, create=create)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("timeout", ["1", None, True, [1], float("nan"), 0, -1, float("inf")])
def test_patience_is_a_number_of_seconds(path, timeout):
    """Read as every other number."""
    with pytest.raises(ParameterError, match="timeout"):
        hs.Ledger(f"sqlite:///{path}", timeout=timeout)


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("own", [True, False])
def test_a_backup_takes_no_name_beside_a_ledger(book, path, tmp_path, ending, own):
    """SQLite would take the copy for a log: nobody could open the ledger, or the copy would go."""
    other = path if own else tmp_path / "other.db"
    if not own:
        with hs.Ledger(f"sqlite:///{other}") as second:
            second.open_budget("c", G(epsilon=1.0))
    book.charge("b", TENTH)
    with pytest.raises(ParameterError, match="SQLite makes"):
        book.backup(other.with_name(other.name + ending))
    for each in (path, other):
        with hs.Ledger(f"sqlite:///{each}", create=False) as again:
            assert len(again.budgets()) == 1
    with pytest.raises(ParameterError, match="SQLite makes"):  # beside nothing, so far
        book.backup(tmp_path / "copy.db-wal")
    with pytest.raises(ParameterError, match="zero bytes"):
        book.backup(f"{tmp_path}/a\0b")


@pytest.mark.parametrize("foreign", [True, False])
def test_a_file_that_was_being_made_when_its_maker_was_killed(tmp_path, foreign):
    """It is made anew by the next one; a database of others is left for others to repair."""
    making, killed = tmp_path / "making.db", tmp_path / "killed.db"
    with contextlib.closing(sqlite3.connect(making, isolation_level=None)) as maker:
        if foreign:
            maker.execute("CREATE TABLE theirs (x)")
        maker.execute("BEGIN")
        maker.execute("PRAGMA user_version = 7")
        journal = Path(f"{making}-journal").read_bytes()
        maker.execute("COMMIT")
    shutil.copy(making, killed)  # written, and not yet committed by removing the journal
    begun = bytes.fromhex("d9d505f920a163d7") + bytes(4)  # as it begins once it is on the disk
    Path(f"{killed}-journal").write_bytes(begun + journal[len(begun) :])
    found = {each: each.read_bytes() for each in tmp_path.glob("killed.db*")}
    assert len(found) == 2
    if foreign:
        with pytest.raises(NotALedger, match="nothing was changed"):
            hs.Ledger(f"sqlite:///{killed}")
        assert {each: each.read_bytes() for each in tmp_path.glob("killed.db*")} == found
        return
    with hs.Ledger(f"sqlite:///{killed}") as ledger:
        ledger.open_budget("b", G(epsilon=1.0))
        assert ledger.charge("b", TENTH).number == 1


def test_a_backup_that_is_stopped_leaves_no_file(book, tmp_path, monkeypatch):
    """Half a copy had the name that was asked for; the next try was refused for it."""
    book.charge("b", TENTH)
    before, copy = set(tmp_path.iterdir()), tmp_path / "copy.db"

    def stop(*_):
        assert not copy.exists()
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(os, "link", stop)
        with pytest.raises(KeyboardInterrupt):
            book.backup(copy)
    assert set(tmp_path.iterdir()) == before
    assert book.backup(copy).stat().st_nlink == 1
    with pytest.raises(ParameterError, match="exists"):
        book.backup(copy)
    assert set(tmp_path.iterdir()) == {*before, copy}


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_a_backup_is_not_read_with_the_log_of_another_one(book, path, tmp_path, ending):
    """Of a copy that was tried by a program that was killed, and removed: its charges came back."""
    copy = tmp_path / "copy.db"
    left = tmp_path / f"copy.db{ending}"
    shutil.copy(f"{path}-wal", left)
    with pytest.raises(ParameterError, match=f"copy.db{ending} is left over .* move it away"):
        book.backup(copy)
    assert not copy.exists()
    left.unlink()
    book.backup(copy)


def test_a_backup_needs_no_second_names(book, tmp_path, monkeypatch):
    """As on exFAT; the copy is whole, and its owner's alone."""
    book.charge("b", TENTH)
    monkeypatch.setattr(os, "link", Mock(side_effect=PermissionError))
    copy = book.backup(tmp_path / "copy.db")
    assert copy.stat().st_mode & 0o777 == 0o600
    with hs.Ledger(f"sqlite:///{copy}", create=False) as found:
        assert found.verify("b") == book.verify("b")


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-SHM"])
def test_a_ledger_has_no_name_beside_another_one(book, path, tmp_path, ending):
    """SQLite would write over it, or the other one could not be opened any more."""
    book.charge("b", TENTH)
    book.close()
    for each in (path, tmp_path / "nothing.db"):
        with pytest.raises(ParameterError, match="SQLite makes"):
            hs.Ledger(f"sqlite:///{each}{ending}")
        assert not each.with_name(each.name + ending).exists()
    assert entries(path) == 1


def test_other_files_are_seen_through_sqlite(tmp_path):
    """Texts of any length, empty files, other databases: told apart without being changed."""
    for size in (1, 50, 600, 5000):
        text = tmp_path / f"{size}.txt"
        text.write_text("private rows"[:1] * size)
        with pytest.raises(NotALedger, match="nothing was changed"):
            hs.Ledger(f"sqlite:///{text}")
        assert text.read_text() == "p" * size
        assert not is_ledger(text)
    assert not is_ledger(tmp_path)
    assert not is_ledger(tmp_path / "nothing")
    (tmp_path / "empty.db").touch()
    with hs.Ledger(f"sqlite:///{tmp_path}/empty.db") as book:
        assert is_ledger(tmp_path / "empty.db-wal")
        assert book.budgets() == ()


# Processes, crashes, disks and clocks

SPENDER = """
    import sys, hushed as hs
    from hushed.errors import Overspent

    url, told = f"sqlite:///{sys.argv[1]}", 0
    handles = [hs.Ledger(url) for _ in range(3)]
    sys.stdin.readline()
    try:
        while True:
            for each in handles:
                each.charge("b", hs.Guarantee(epsilon=1 / 64))
                told += 1
            handles[told % 3].close()
            handles[(told + 1) % 3] = hs.Ledger(url)
    except Overspent:
        print(told)
"""


def started(text, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_two_processes_with_several_handles_each(book, path):
    """Handles are opened and closed while charging: together exactly what the limit holds."""
    both = [started(SPENDER, path) for _ in range(2)]
    for each in both:
        each.stdin.write("\n")
        each.stdin.flush()
    told = [int(each.communicate(timeout=120)[0]) for each in both]
    assert sum(told) == entries(path) == 64
    assert book.balance("b").epsilon_left == 0.0


ENDLESS = """
    import sys, hushed as hs
    ledger = hs.Ledger(f"sqlite:///{sys.argv[1]}")
    while True:
        print(ledger.charge("b", hs.Guarantee(epsilon=2.0**-30)).number, flush=True)
"""


@pytest.mark.slow
def test_killed_spenders_lose_nothing(book, path):
    """Killed in the midst of charging, again and again: what was told is recorded."""
    for _ in range(4):
        running = started(ENDLESS, path)
        last = 0
        for _ in range(25):
            last = int(running.stdout.readline())
        with running:
            running.kill()  # communicate() would leave out what was read ahead
            rest = running.stdout.read().split("\n")[:-1]  # the last line may be cut
        last = int(rest[-1]) if rest else last
        assert last <= entries(path) <= last + 1
        book.charge("b", G(epsilon=2.0**-30))


FULL = """
    import resource, signal, sys, hushed as hs
    from hushed.errors import LedgerUnavailable

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ledger, told = hs.Ledger(f"sqlite:///{sys.argv[1]}"), 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    for _ in range(200):
        try:
            ledger.charge("b", hs.Guarantee(epsilon=2.0**-30), "x" * 5000)
            told += 1
        except LedgerUnavailable as problem:
            print(problem, file=sys.stderr)
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    ledger.charge("b", hs.Guarantee(epsilon=2.0**-30))
    print(told + 1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("size", [150_000, 151_111, 300_001])
def test_a_full_disk_never_loses_what_was_told(book, path, size):
    """A charge that cannot be written is refused; with room again it goes on."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    done = script(FULL, path, size)
    assert done.returncode == 0, done.stderr
    assert "cannot be used now" in done.stderr
    assert entries(path) == int(done.stdout) == book.balance("b").entries


NO_ROOM = """
    import resource, signal, sys, hushed as hs
    from hushed.errors import LedgerUnavailable

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if sys.argv[2] == "opened":
        book = hs.Ledger(f"sqlite:///{sys.argv[1]}")
        book.balance("b")
        book.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))
    try:
        if sys.argv[2] == "opened":
            book.charge("b", hs.Guarantee(epsilon=2.0**-30))
        else:
            hs.Ledger(f"sqlite:///{sys.argv[1]}")
    except LedgerUnavailable as problem:
        print(problem)
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["fresh", "opened"])
def test_no_room_for_the_index_of_the_log_is_told_as_a_full_disk(book, path, when):
    """SQLite calls it an error of the disk, and nobody knew what to do."""
    book.close()
    done = script(NO_ROOM, path, when)
    assert done.returncode == 0, done.stderr
    assert "disk I/O error" in done.stdout
    assert "make room" in done.stdout


def test_the_clock_decides_nothing(book, monkeypatch):
    """A clock that stops or runs backwards changes what is noted, never what is counted."""
    moments = [datetime(2030, 1, 1, tzinfo=UTC) - timedelta(days=i // 2) for i in range(8)]
    told = iter(each.isoformat(timespec="microseconds") for each in moments)
    monkeypatch.setattr(requests, "now", lambda: next(told))
    for number in range(1, 9):
        assert book.charge("b", TENTH).number == number
    assert [each.number for each in book.entries("b")] == list(range(1, 9))
    assert [each.number for each in book.history("b")] == list(range(9))
    assert book.entries("b")[-1].at < book.entries("b")[0].at
    with pytest.raises(Overspent):
        book.charge("b", TENTH)


def test_a_file_that_shrinks_under_its_user_is_refused(book, path):
    """Cut to nothing by another program (a shell's `> budget.db`): no charge goes through."""
    book.charge("b", TENTH)
    book.close()
    path.write_bytes(b"")
    with pytest.raises((LedgerUnavailable, DamagedLedger)):
        book.charge("b", TENTH)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"hushed_heads", b"hushed\xc6heads"),
        (b"TABLE hushed_heads", b"T\xc6BLE hushed_heads"),
        (b"remark of the colleague", b"remark of the c\xc6lleague"),
    ],
)
def test_bytes_that_are_no_text_are_damage(book, tmp_path, old, new):
    """SQLite's own words quote them, and cannot be read then; what they stood in is not shown."""
    book.charge("b", TENTH, "remark of the colleague")
    damaged = book.backup(tmp_path / "damaged.db")
    whole = damaged.read_bytes()
    assert old in whole
    damaged.write_bytes(whole.replace(old, new))
    with pytest.raises(DamagedLedger) as told, hs.Ledger(f"sqlite:///{damaged}") as found:
        found.entries("b")
    assert "remark" not in str(told.value)


@pytest.mark.parametrize(
    "undo",
    [
        "DELETE FROM hushed_entries WHERE number = NEW.entries; UPDATE hushed_heads SET "
        "entries = OLD.entries, digest = OLD.digest",
        "DELETE FROM hushed_entries WHERE number = NEW.entries",
        "UPDATE hushed_heads SET entries = OLD.entries, digest = OLD.digest",
    ],
    ids=["both", "entry", "head"],
)
def test_a_file_that_forgets_each_charge_takes_none(tmp_path, undo):
    """A trigger that somebody left in it would let every program spend the whole budget again."""
    path = tmp_path / "l.db"
    with hs.Ledger(f"sqlite:///{path}") as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0))
        book.charge("b", hs.Guarantee(epsilon=0.1))
    with contextlib.closing(sqlite3.connect(path)) as hand:
        hand.execute("DROP TRIGGER hushed_heads_step")
        hand.execute("DROP TRIGGER hushed_entries_delete")
        hand.execute(f"CREATE TRIGGER trap AFTER UPDATE ON hushed_heads BEGIN {undo}; END")
    for _ in range(2):
        with hs.Ledger(f"sqlite:///{path}") as book:
            with pytest.raises(DamagedLedger, match="nothing was charged"):
                book.charge("b", hs.Guarantee(epsilon=0.1))
            assert book.balance("b").entries == 1


def test_no_copy_holds_what_was_deleted_before(path, monkeypatch):
    """Some builds of SQLite leave it in the file, where the next copy takes it along."""

    def built_otherwise(*given):
        made = connect_file(*given)
        made.execute("PRAGMA secure_delete = OFF")
        return made

    monkeypatch.setattr("hushed.ledger._store.connect_file", built_otherwise)
    with hs.Ledger(f"sqlite:///{path}") as ledger:
        ledger.open_budget("b", G(epsilon=1.0))
        entry = ledger.charge("b", TENTH)
        ledger.keep_answer("b", entry, "secret answer" * 100)
        with writing(ledger) as connection:
            for each in answers_that_end("sqlite"):  # as in a server's
                run(connection, each, {})
            empty_answer(connection, "b", 1)
        copy = ledger.backup(path.with_name("copy.db"))
    assert b"secret answer" not in copy.read_bytes()
