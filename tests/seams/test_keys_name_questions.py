"""Under one key there is one question: another column, or other people, are refused."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.errors import KeyInUse

UNIT = hs.populations.Uniform(low=0.0, high=1.0)


@pytest.fixture
def book(tmp_path):
    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=50.0, gamma=0.9))
        yield ledger


@pytest.mark.slow_cases("words0")
@pytest.mark.parametrize(
    "words",
    [["statistic", "median", "--low", "0", "--high", "9000"], ["find-bound"]],
)
def test_another_column_is_another_question(words, book, tmp_path):
    """On the command line a column has a name: its answer is not told for another one."""
    lines = "\n".join(f"{i % 7 + 1},{1000 * (i % 5 + 1)},{i % 50}" for i in range(300))
    (tmp_path / "two.csv").write_text(f"a,b,whose\n{lines}\n")
    asked = [*words, str(tmp_path / "two.csv"), "--epsilon", "1", "--json", "--key", "k"]
    asked += ["--ledger", f"sqlite:///{tmp_path / 'l.db'}", "--budget", "b"]
    one, again, other = (
        CliRunner().invoke(app, [*asked, "--column", column]) for column in ("a", "a", "b")
    )
    assert one.exit_code == 0, one.stderr
    assert json.loads(again.stdout)["value"] == json.loads(one.stdout)["value"]
    assert other.exit_code != 0
    assert "KeyInUse" in other.stderr
    assert book.balance("b").spent.epsilon == 1.0


def test_people_are_another_question_than_rows(book):
    """A certificate about rows does not answer who declares that each row is one person."""
    rows = np.linspace(0, 1, 20)
    asked = [
        hs.Laplace(
            hs.sample_sensitivity(np.mean, UNIT, rows=20, gamma=0.3, unit=unit, workers=1),
            epsilon=1.0,
        )
        for unit in ("row", "person")
    ]
    hs.release(np.mean, rows, asked[0], book, budget="b", key="k")
    with pytest.raises(KeyInUse):
        hs.release(np.mean, rows, asked[1], book, budget="b", key="k")
