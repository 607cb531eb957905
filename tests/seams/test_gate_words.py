"""Whose row it is: certificates speak of rows, and of people only where that was declared."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.errors import ParameterError
from hushed.plots import certificate_page
from hushed.releasing import certify

UNIT = hs.populations.Uniform(low=0, high=1)
PEOPLE = re.compile(r"\b(people|persons?('s)?|humans?|individuals?)\b", re.IGNORECASE)


def sampled(protect="record", **settings):
    return hs.sample_sensitivity(
        mean, UNIT, rows=8, protect=protect, gamma=0.1, workers=1, **settings
    )


def mean(rows):
    return rows.mean()


def proven(**settings):
    return hs.proven_sensitivity(0.1, argument="clipped to [0, 1]", **settings)


def everything(certificate):
    """All that is shown of a certificate."""
    page = certificate_page(certificate)
    return certificate.explain() + re.sub(r"<pre>.*</pre>", "", page, flags=re.DOTALL)


@pytest.mark.slow_cases("everyone", "record", "simultaneous")
@pytest.mark.parametrize("protect", ["record", "everyone", "simultaneous", None])
def test_rows_unless_declared(protect):
    """Not a word of people where nobody said that a row is one; people where somebody did."""
    settings = {} if protect is None else {"protect": protect}
    make = proven if protect is None else sampled
    rows = certify(hs.Laplace(make(**settings), epsilon=1.0), values=1)
    said = everything(rows)
    assert not PEOPLE.search(said)
    assert "with one row replaced" in said
    assert "somebody with several is protected less" in said
    assert f"costs {'epsilon' if protect is None else 'epsilon and gamma'} again" in said
    assert not rows.person
    people = certify(hs.Laplace(make(unit="person", **settings), epsilon=1.0), values=1)
    said = everything(people)
    assert "the row of one person replaced" in said
    assert "was declared, and not checked" in said
    if protect is not None:
        assert "8 people of the table" in said
    assert people.person
    assert people.guarantee == rows.guarantee
    assert people.guarantee.unit == "row"
    assert hs.Certificate.from_json(people.to_json()) == people


def test_users_are_neither():
    """A promise for users speaks of users."""
    s = hs.proven_sensitivity(1.0, unit="user", argument="each counted once")
    said = certify(hs.Laplace(s, epsilon=1.0), values=1).explain()
    assert "all rows of one user" in said
    assert "somebody with several" not in said


def test_the_declaration_survives_what_is_done_to_a_sensitivity():
    """A shift changes gamma only, and a run of the sampling confirms the rest."""
    s = sampled(unit="person").shifted(1e-6)
    c = certify(hs.Laplace(s, epsilon=1.0), values=1)
    assert c.person
    assert hs.verify(c, mean).reproduced


@pytest.mark.parametrize("unit", ["user", "people", "", None])
def test_other_units_are_refused(unit):
    """A sampled sensitivity knows rows; what they are is a declaration."""
    with pytest.raises(ParameterError, match="unit"):
        sampled(unit=unit)
    with pytest.raises(ParameterError, match="unit"):
        proven(unit="rows" if unit == "user" else unit)


FUNCTION = "def mean(rows):\n    return rows.mean()\n"


def run(*arguments):
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("unit", ["row", "person"])
def test_on_the_command_line(unit, tmp_path, monkeypatch):
    """Sensitivity and release take the declaration; rows are the default."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(FUNCTION)
    (tmp_path / "rows.csv").write_text("x\n" + "\n".join(["0.5"] * 19 + ["1000000"]) + "\n")
    public = np.random.default_rng(2).random(300)
    (tmp_path / "public.csv").write_text("x\n" + "\n".join(map(str, public)) + "\n")
    said = ["--unit", unit] if unit == "person" else []
    common = [
        "f.py:mean",
        "--population",
        "public.csv",
        "--promise",
        "table",
        "--bounds",
        "x:0,1",
        "--workers",
        1,
        *said,
    ]
    found = run("sensitivity", *common, "--rows", 20, "--json")
    assert json.loads(found.stdout)["unit"] == unit
    done = run("release", "rows.csv", *common, "--epsilon", 1e6, "--out", "c.json")
    assert bool(PEOPLE.search(done.stdout)) == (unit == "person")
    assert "clamped to [0, 1] in column '0'" in done.stdout
    assert "released: 0.5" in done.stdout
    assert run("verify", "c.json", "f.py:mean", "--population", "public.csv", "--workers", 1)
    far = run("release", "rows.csv", *common, "--epsilon", 1e6, "--outside", "allow")
    assert "is not covered" in far.stdout
    assert "released: 5000" in far.stdout


@pytest.mark.parametrize("bounds", ["x", "x:1", "x:1,0", ":0,1", "nowhere:0,1", "x:a,b", "0:0,1"])
def test_bounds_that_are_none(bounds, tmp_path, monkeypatch):
    """What is no range of a column is refused by name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(FUNCTION)
    (tmp_path / "public.csv").write_text("x\n0.25\n0.5\n")
    arguments = ["sensitivity", "f.py:mean", "--population", "public.csv", "--rows", "5"]
    done = CliRunner().invoke(app, [*arguments, "--bounds", bounds])
    assert done.exit_code != 0
    assert "bounds" in done.output or "COLUMN:LOW,HIGH" in done.output
