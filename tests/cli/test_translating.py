"""What the library says in words of Python is said in the words of the command that runs."""

import pytest
import typer
from tests.commands import ended
from typer.testing import CliRunner

from hushed.cli._spelling import SpellingCommand
from hushed.cli._translating import translate

CASES = {
    "give gamma=0.616: more rows": "give --gamma 0.616: more rows",
    "say promise='given-the-rest'": "say --promise given-the-rest",
    "with batch=True, or batch=False.": "with --batch, or --no-batch.",
    "hs.Blockwise(f, rows=20, user='p'), or more": "--block-rows 20, or more",
    "say keep=hs.runs.Keep(FOLDER, private=True), and": "say --keep-private, and",
    "hs.Laplace(hs.sample_sensitivity(f, ...), epsilon=1). It": "hushed release --mechanism "
    "laplace --epsilon 1. It",
    "hs.table(...).quantiles(...).release(epsilon=2)": "hushed query --epsilon 2",
    "use hs.test_sensitivity, or": "use hushed test-sensitivity, or",
    "the answer's scale; say gamma=0.2, it's": "the answer's scale; say --gamma 0.2, it's",
    # Names of others, of Python files, and of what the command does not have.
    "there is no column 'gamma=1'": "there is no column 'gamma=1'",
    "wrap it as hs.fixed_seed(f, seed=0)": "wrap it as hs.fixed_seed(f, seed=0)",
    "scikit-learn has random_state=0": "scikit-learn has random_state=0",
    "gamma=1.csv is no file": "gamma=1.csv is no file",
}


def test_words_of_python_become_those_of_the_command():
    """Arguments are its options, and functions other commands; what is quoted stays."""
    app = typer.Typer()
    said = {}

    @app.command(cls=SpellingCommand)
    def ask(
        gamma: float = 0.1,
        promise: str = "",
        batch: bool = False,
        seed: int = 0,
        block_rows: int = 0,
        keep_private: bool = False,
    ) -> None:
        said.update({text: translate(text) for text in CASES})

    assert CliRunner().invoke(app, []).exit_code == 0
    assert said == CASES


@pytest.mark.slow
def test_no_command_advises_words_of_python(tmp_path):
    """A table that is too small, a comparison and a certificate, where Python would be typed."""
    (tmp_path / "f.py").write_text("def mean(rows):\n    return float(rows.mean())\n")
    (tmp_path / "p.csv").write_text("x\n" + "\n".join(str(i / 120) for i in range(120)))
    (tmp_path / "q.csv").write_text("x\n" + "\n".join(str((i + 0.5) / 900) for i in range(900)))
    box = "--population uniform:0,1 --gamma 0.4"
    for line, wanted in (
        ("release p.csv f.py:mean --header --epsilon 1 --population q.csv", "--block-rows 6"),
        (f"release p.csv f.py:mean --header --epsilon 1 {box}", "declare --symmetric"),
        (f"compare f.py:mean --rows 20 --trials 20 {box}", "hushed release --mechanism laplace"),
    ):
        found = ended(*line.split(), cwd=tmp_path)
        told = found.stdout + found.stderr
        assert wanted in " ".join(told.split())
        assert "=True" not in told
        assert "hs." not in told.replace("hs.proven_sensitivity in Python", "")
