"""What is not defended: each attack works, so that docs/threat-model.md claims no more than holds.

A test here that fails is good news for users and an error in that page.
"""

import copy
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import hushed as hs
from hushed.errors import HushedError
from hushed.noise import _entropy as entropy
from hushed.runs._records import read_records, write_record

UNIT = hs.populations.Uniform(low=0, high=1)
SECRET = 0.8125
PROVEN = hs.proven_sensitivity(1.0, argument="a count")


def mechanism(function, population=UNIT, rows=20):
    sampled = hs.sample_sensitivity(function, population, rows=rows, gamma=0.3)
    return hs.Laplace(sampled, epsilon=1.0)


@pytest.fixture
def private():
    rows = np.random.default_rng(5).random(20)
    rows[7] = SECRET
    return rows


def test_a_function_may_write_the_rows_elsewhere(tmp_path, private):
    """What the function does beside answering is not seen."""
    target = tmp_path / "stolen"

    def mean(rows):
        target.write_text(repr(rows.tolist()))
        return rows.mean()

    hs.release(mean, private, mechanism(mean))
    assert repr(SECRET) in target.read_text()


def test_a_thread_from_before_is_heard(capsys, private):
    """What a function hands to a thread that it did not start is said as that thread says it."""
    work = queue.SimpleQueue()
    worker = threading.Thread(target=lambda: print(work.get()))
    worker.start()

    def mean(rows):
        work.put(rows.max())
        worker.join(30)
        return rows.mean()

    hs.release(mean, private * 0 + SECRET, hs.Laplace(PROVEN, epsilon=1.0))
    assert str(SECRET) in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals")
def test_what_is_done_later_is_heard(capsys, private):
    """A handler of a signal that a function leaves speaks after the call."""
    before = signal.getsignal(signal.SIGUSR1)

    def mean(rows):
        signal.signal(signal.SIGUSR1, lambda *_: print(rows.max()))
        return rows.mean()

    try:
        hs.release(mean, private * 0 + SECRET, hs.Laplace(PROVEN, epsilon=1.0))
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert str(SECRET) in capsys.readouterr().out


@pytest.mark.parametrize("way", ["a process of its own", "the stream of bytes below"])
def test_what_is_said_past_python_is_heard(way, capfd, private):
    """Python's streams are quiet, and not the files of the process."""
    below = sys.stdout.buffer

    def mean(rows):
        if way == "a process of its own":
            subprocess.run([sys.executable, "-c", f"print({rows.max()})"], check=True)
        else:
            below.write(f"{rows.max()}\n".encode())
        return rows.mean()

    hs.release(mean, private * 0 + SECRET, hs.Laplace(PROVEN, epsilon=1.0))
    below.flush()
    assert str(SECRET) in capfd.readouterr().out


@pytest.mark.slow
def test_a_function_may_end_the_process(tmp_path):
    """The charge stays, no answer is stored, and the end tells of the rows each time."""
    program = """if True:
        import os, sys
        import hushed as hs
        one = hs.proven_sensitivity(1.0, argument="a count")
        count = lambda rows: os._exit(3) if max(rows) > 0.8 else len(rows)
        with hs.Ledger("sqlite:///budget.db") as book:
            if not book.budgets():
                book.open_budget("b", hs.Guarantee(epsilon=1.0))
            laplace = hs.Laplace(one, epsilon=1.0)
            hs.release(count, [0.5, float(sys.argv[1])], laplace, book, budget="b", key="k")
    """
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", program, str(SECRET)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        assert ended.returncode == 3
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as book:
        assert (book.balance("b").entries, book.answer("b", "k")) == (1, None)


def test_types_that_were_told_from_the_rows_are_in_all_blocks():
    """One missing cell makes a column of whole numbers one of floats, in every part."""
    tells = lambda rows: float(rows["n"].dtype.kind == "f")  # noqa: E731
    blocks = hs.Blocks([0.0, 1.0], epsilon=9.0, blocks=8)
    answers = [
        [tells(part) for part in blocks.split(pd.DataFrame({"n": [1, 2, 3, 4] * 10 + last}))]
        for last in ([5], [None])
    ]
    assert answers == [[0.0] * 8, [1.0] * 8]


@pytest.mark.slow
def test_a_function_may_hold_what_was_computed_from_the_rows(private):
    """A number that was computed from all rows looks like any other, and is in all blocks."""
    largest = float(private.max())
    blocks = hs.Blocks(low=0, high=1, epsilon=40.0, blocks=2, aggregate="mean")
    found = hs.release(lambda rows: largest + 0 * len(rows), private, blocks)
    assert abs(found.value - largest) < 0.2


def test_the_author_of_a_mechanism_is_believed(private):
    """A mechanism that adds no noise at all is certified, as the word of its author."""

    class Bare:
        name, norms, loss, scale = "bare", ("l1",), None, None

        def __init__(self, sensitivity):
            self.sensitivity, self.parameters = sensitivity, {}
            self.guarantee = sensitivity.guarantee(0.01)

        def accuracy(self, beta=0.05, dims=1):
            return None

        def draw(self, value):
            return value

    def mean(rows):
        return rows.mean()

    made = hs.release(mean, private, Bare(mechanism(mean).sensitivity))
    assert made.value == private.mean()
    assert made.certificate.guarantee.epsilon == 0.01
    assert made.certificate.explain().startswith("THE PROMISE RESTS ON THE WORD OF AN AUTHOR")


def test_an_old_copy_of_a_ledger_forgets(tmp_path):
    """Put back while no program has it open, an old copy knows nothing of later charges."""
    path, old = tmp_path / "budget.db", tmp_path / "old.db"
    with hs.Ledger(f"sqlite:///{path}") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0))
    shutil.copy(path, old)
    with hs.Ledger(f"sqlite:///{path}") as ledger:
        ledger.charge("b", hs.Guarantee(epsilon=0.75))
    for file in tmp_path.glob("budget.db*"):
        file.unlink()
    shutil.copy(old, path)
    with hs.Ledger(f"sqlite:///{path}") as ledger:
        entry = ledger.charge("b", hs.Guarantee(epsilon=0.75))  # 1.5 of 1 in all
        assert (entry.number, ledger.balance("b").spent.epsilon) == (1, 0.75)


def test_whoever_may_read_the_database_needs_no_hushed(tmp_path):
    """The file of a table is a file."""
    path = tmp_path / "rows.csv"
    path.write_text(f"x\n{SECRET}\n0.5\n")
    hs.table(str(path), types={"x": "float"}).count().release(epsilon=1.0)
    assert str(SECRET) in path.read_text()


def test_the_same_process_can_replace_the_noise(monkeypatch, private):
    """With words that an attacker chooses, two releases are one."""
    chosen = mechanism(np.mean)
    answers = []
    for _ in range(2):
        monkeypatch.setattr(entropy.os, "urandom", np.random.default_rng(1).bytes)
        answers.append(hs.release(np.mean, private, chosen).value)
    assert answers[0] == answers[1]


def test_anyone_can_write_a_certificate_that_verifies():
    """No private row was ever there."""
    nobody = np.full(20, 0.5)
    forged = hs.release(np.mean, nobody, mechanism(np.mean)).certificate
    again = hs.Certificate.from_json(forged.to_json())
    assert hs.verify(again, np.mean).reproduced


def test_a_copy_in_the_middle_of_a_draw_repeats_it():
    """Words that were read ahead for the same draw are in both copies."""
    words = entropy.operating_system_words()
    words.word()
    other = copy.deepcopy(words)
    assert np.array_equal(words.take(8), other.take(8))


def test_a_range_taken_from_the_rows_is_not_recognised(private):
    """The range is private, and stands on the certificate."""
    fitted = hs.populations.Uniform(low=0, high=float(private.max()))
    released = hs.release(np.mean, private, mechanism(np.mean, fitted))
    told = released.certificate.sampling.population
    assert told == fitted.describe()
    assert told != hs.populations.Uniform(low=0, high=1).describe()


@pytest.mark.slow
def test_a_view_that_mixes_users_breaks_the_promise(tmp_path):
    """One person among 2000 decides an answer at epsilon 0.1."""
    duckdb = pytest.importorskip("duckdb")
    answers = []
    for top in (0, 1000):
        path = tmp_path / f"{top}.db"
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t AS SELECT i AS who, 0 AS x FROM range(1, 2000) r(i)")
            connection.execute(f"INSERT INTO t VALUES (0, {top})")
            connection.execute("CREATE VIEW v AS SELECT who, max(x) OVER () AS top FROM t")
        with pytest.warns(UserWarning, match="v is a view"):
            asked = hs.table(f"duckdb:///{path}", "v", user="who").bound_contributions(
                max_rows_per_user=1
            )
        mean = asked.mean("top", low=0, high=1000, name="top")
        answers.append(float(mean.release(epsilon=1.0).to_dict()["top"][0]))
    assert answers[0] < 100
    assert answers[1] > 900


def test_a_user_is_a_spelling(tmp_path):
    """Four spellings of a name have four shares of every answer."""
    path = tmp_path / "rows.csv"
    path.write_text('who\nAda\nada\n"Ada "\nA\u200bda\n', encoding="utf-8")
    asked = (
        hs.table(str(path), user="who")
        .bound_contributions(max_rows_per_user=1)
        .count_users(name="people")
    )
    answers = [asked.release(epsilon=20.0).to_dict()["people"][0] for _ in range(5)]
    assert np.median(answers) == 4


def test_a_budget_does_not_know_who_a_user_is(tmp_path):
    """Where the number of a visit is called the user, one patient decides the whole answer."""
    visits = pa.table({"visit": list(range(100)), "patient": ["Ada"] * 100})
    with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as book:
        limit = hs.Guarantee(epsilon=40.0, neighbours="add-remove", unit="user")
        book.open_budget("patients", limit)
        found = {}
        for named in ("patient", "visit"):
            asked = hs.table(visits, user=named).bound_contributions(max_rows_per_user=1).count()
            answer = asked.release(epsilon=20.0, ledger=book, budget="patients")
            found[named] = answer.value("count")
        assert found["patient"] <= 10
        assert found["visit"] >= 90


def test_a_text_of_several_lines_is_rows_of_several_users(tmp_path):
    """One record of a CSV file, as other programs read it, is as many rows as it has lines."""
    path, other = tmp_path / "rows.csv", tmp_path / "rows.parquet"
    frame = pa.table({"who": ["Ada"], "text": ["my\nBob,\nEve,\nlines"]})
    frame.to_pandas().to_csv(path, index=False)
    parquet.write_table(frame, other)

    def people(source):
        asked = hs.table(source, user="who").bound_contributions(max_rows_per_user=1)
        return asked.count_users().release(epsilon=50.0).value("users")

    assert people(path) >= 3
    assert people(other) == 1


@pytest.mark.slow
def test_whoever_may_write_a_kept_run_decides_its_movements(tmp_path):
    """Forged movements between the trials that are run again are believed."""
    true = hs.sample_sensitivity(np.mean, UNIT, rows=20, pairs=500, keep=tmp_path)
    (part,) = tmp_path.glob("*/*/*.part")
    found = np.concatenate([each.values for each in read_records(part.read_bytes(), "")[0]])
    found[8:-1, 0] /= 2
    part.write_bytes(write_record(0, found))
    forged = hs.sample_sensitivity(np.mean, UNIT, rows=20, pairs=500, keep=tmp_path)
    assert forged.value < true.value
    released = hs.release(np.mean, np.linspace(0, 1, 20), hs.Laplace(forged, epsilon=1.0))
    assert not hs.verify(released.certificate, np.mean, keep=tmp_path).reproduced


def test_a_refusal_tells_of_the_rows(private):
    """Whether a release is refused may depend on a single row."""

    def picky(rows):
        if SECRET in rows:
            raise ValueError
        return rows.mean()

    chosen = mechanism(picky)
    with pytest.raises(HushedError):
        hs.release(picky, private, chosen)
    private[7] = 0.5
    hs.release(picky, private, chosen)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "threat-model.md"


def test_the_page_names_every_test_here():
    """No attack is shown here that the page leaves out."""
    text = PAGE.read_text(encoding="utf-8")
    here = {name for name, what in globals().items() if name.startswith("test_") and callable(what)}
    for name in here - {"test_the_page_names_every_test_here"}:
        assert f"`tests/seams/test_threat_model.py::{name}`" in text
