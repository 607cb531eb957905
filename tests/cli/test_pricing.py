"""The commands risk, cost and compose: one JSON object, exit codes, files, messages."""

import json
import math

import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app


def run(*args):
    return CliRunner().invoke(app, [str(x) for x in args])


def json_of(result):
    """Standard output is exactly one JSON object."""
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


class TestRisk:
    def test_json(self):
        """The numbers of one level, as JSON."""
        result = run("risk", "--epsilon0", 2, "--epsilon", 1.9, "--json")
        assert result.exit_code == 0
        record = json_of(result)
        assert record["levels"][0]["delta"] == pytest.approx(0.0487706, abs=1e-6)
        assert record["over_promises_from"] == pytest.approx(0.5385, abs=1e-4)

    def test_table_and_warning(self):
        """A table on standard output, the warning with its numbers on standard error."""
        result = run("risk", "--epsilon0", 2, "--epsilon", 1.9)
        assert result.exit_code == 0
        assert "published risk" in result.stdout
        assert "0.04878" in result.stderr
        assert "promise more" in result.stderr
        assert "note" not in result.stdout

    def test_confidence(self):
        """The published level of a confidence, and the exact one beside it."""
        record = json_of(run("risk", "--epsilon0", 1, "--confidence", 0.6224593312, "--json"))
        assert record["published_epsilon"] == pytest.approx(0.5, abs=1e-8)
        assert record["exact_epsilon"] > 0

    def test_level_above_epsilon0_is_bad_use(self):
        """A level above epsilon0 exits with 2 and says what is allowed."""
        result = run("risk", "--epsilon0", 1, "--epsilon", 2, "--json")
        assert result.exit_code == 2
        assert json_of(result)["error"]["type"] == "ParameterError"
        assert "exceeds epsilon0" in result.stderr

    def test_both_questions_at_once_are_bad_use(self):
        """A level and a confidence together exit with 2."""
        assert run("risk", "--epsilon0", 1, "--epsilon", 0.5, "--confidence", 0.5).exit_code == 2


class TestCost:
    def test_plan_that_does_not_fit_is_refused(self):
        """An infeasible wish exits with 1; JSON still carries the whole plan."""
        args = ["cost", "--error", 2, "--beta", 0.05, "--budget", 40000]
        args += ["--per-person", 5500, "--people", 100]
        result = run(*args, "--json")
        assert result.exit_code == 1
        record = json_of(result)
        assert record["feasible"] is False
        assert record["epsilon"] == pytest.approx(1.497866, abs=1e-6)
        plain = run(*args)
        assert plain.exit_code == 1
        assert "not feasible" in plain.stderr
        assert "3.926 times" in plain.stderr

    def test_only_error_and_budget(self):
        """Error and budget alone give a level, a mechanism, a sentence and a condition."""
        result = run("cost", "--error", 2, "--beta", 0.05, "--budget", 40000)
        assert result.exit_code == 0
        assert "Laplace" in result.stdout
        assert "77,983.39" in result.stdout
        assert "For a proposal" in result.stdout

    def test_an_assumed_sensitivity_is_told_with_its_option(self):
        """What nobody stated is assumed, aloud; what was stated is not told."""
        told = run("cost", "--error", 2, "--need", "a:30").stderr
        assert "one record moves the answer by at most 1" in told
        assert "--sensitivity says otherwise" in told
        assert "one record moves a by at most 1" in told
        assert "NAME:ERROR:BETA:SENSITIVITY says otherwise" in told
        stated = run("cost", "--error", 2, "--sensitivity", 1, "--need", "a:30::2")
        assert stated.exit_code == 0
        assert "assumed:" not in stated.stderr

    def test_workload(self):
        """Several needs are solved together."""
        result = run(
            "cost", "--need", "a:30:0.05", "--need", "b:40::2", "--budget", 1e6, "--per-person",
            5500, "--people", 100, "--json",
        )  # fmt: skip
        record = json_of(result)
        assert record["feasible"] is True
        assert [c["need"]["name"] for c in record["choices"]] == ["a", "b"]
        assert record["choices"][1]["epsilon"] == pytest.approx(0.05)

    def test_price_a_level(self):
        """The health centre to the cent, with the note on the published basis."""
        args = ["cost", "--epsilon0", 0.5, "--per-person", 5500, "--people", 100]
        args += ["--basis", "published", "--budget", 50000]
        record = json_of(run(*args, "--json"))
        assert round(record["optimum"]["budget"], 2) == 37805.86
        assert round(record["optimum"]["saving"], 2) == 36628.55
        assert record["levels_within_budget"]["low"] == pytest.approx(0.13913, abs=5e-6)
        plain = run(*args)
        assert "37,805.86" in plain.stdout
        cells = [line.split() for line in plain.stdout.splitlines()]
        rows = {each[1]: each[-2] for each in cells if len(each) > 9 and each[0] == "│"}
        assert rows == {"exact": "nominal", "loss": "average", "published": "nominal"}
        assert "nobody pays or saves that on average" in " ".join(plain.stdout.split())
        assert "not a statement about the privacy loss" in plain.stderr

    @pytest.mark.parametrize(
        "args",
        [
            [],
            ["--error", "-1"],
            ["--epsilon0", "0.5"],
            ["--epsilon0", "0.5", "--error", "2"],
            ["--need", "a"],
            ["--need", "a:x"],
            ["--error", "1", "--basis", "hope"],
            ["--error", "1", "--budget", "-5"],
            ["--epsilon0", "0.5", "--per-person", "-5"],
        ],
    )
    def test_bad_use(self, args):
        """Missing, contradictory or negative options exit with 2 and print nothing on stdout."""
        result = run("cost", *args)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.startswith("ParameterError: ")

    def test_impossible_budget_is_refused(self):
        """A budget below the optimum exits with 1."""
        args = ["--epsilon0", 0.5, "--per-person", 5500, "--people", 100, "--budget", 10]
        assert run("cost", *args).exit_code == 1


class TestCompose:
    def test_json(self):
        """The default method as JSON, with its bracket."""
        args = ["laplace:0.1x500", "--delta", "1e-5", "--json"]
        bare = json_of(run("compose", *args))
        assert bare["guarantee"] is None  # nobody said between which tables
        assert bare["epsilon"] == pytest.approx(11.191, abs=1e-3)
        record = json_of(run("compose", *args, "--neighbours", "add-remove"))
        assert record["guarantee"]["neighbours"] == "add-remove"
        assert record["guarantee"]["epsilon"] == pytest.approx(11.191, abs=1e-3)
        assert record["exact"]["low"] <= record["guarantee"]["epsilon"]

    @pytest.mark.slow
    def test_all_methods(self):
        """All methods in one table; those that do not apply are named on standard error."""
        result = run("compose", "laplace:0.1x50", "gaussian:0.05x20", "--method", "all")
        assert result.exit_code == 0
        for name in ("pld", "renyi", "zcdp"):
            assert name in result.stdout
        assert "left out at-risk" in result.stderr

    def test_one_release_is_not_called_releases(self):
        """Neither in the table nor in the words of Python."""
        assert run("compose", "laplace:0.1").stdout.startswith("1 release at delta")
        told = hs.compose([hs.Guarantee(epsilon=1.0)], delta=1e-6).explain()
        assert told.startswith("1 release: epsilon")

    def test_a_sum_says_that_it_needs_a_plan(self):
        """As `hs.compose` does: no theorem covers levels that were chosen by the answers before."""
        words = "how much each may lose, was fixed before the first answer"
        assert words in run("compose", "laplace:0.1x2").stdout
        assert words in run("compose", "guarantee:1", "guarantee:0.5", "--parallel").stdout
        assert words not in run("compose", "laplace:0.1").stdout

    def test_every_kind_of_release(self):
        """Every documented kind is understood."""
        kinds = ["laplace:0.1", "gaussian:0.1x2", "range:0.1", "response:0.1,3", "response:0.1"]
        kinds += ["discrete-laplace:10,2", "discrete-gaussian:20", "guarantee:0.1,1e-9"]
        record = json_of(run("compose", *kinds, "--json"))
        assert record["releases"] == 9

    @pytest.mark.parametrize(
        "args",
        [
            ["laplace"],
            ["laplace:x"],
            ["laplace:0.1,2"],
            ["magic:1"],
            ["laplace:0.1x0"],
            ["laplace:-1"],
            ["laplace:0.1", "--method", "magic"],
            ["gaussian:1", "--delta", "0"],
        ],
    )
    def test_bad_use(self, args):
        """Unreadable releases, unknown methods and delta = 0 with a Gaussian exit with 2."""
        result = run("compose", *args)
        assert result.exit_code == 2
        assert result.stdout == ""


class TestPlots:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<")]
    )
    def test_files(self, tmp_path, suffix, start):
        """A figure is written in each format; standard output stays one JSON object."""
        target = tmp_path / f"figure.{suffix}"
        result = run("risk", "--epsilon0", 2, "--plot", target, "--json")
        assert result.exit_code == 0
        assert target.read_bytes().lstrip().startswith(start)
        json_of(result)
        assert str(target) in result.stderr.replace("\n", "")

    @pytest.mark.slow
    def test_source_units_and_legend(self, tmp_path):
        """The figure carries its source, its units and a legend."""
        target = tmp_path / "cost.svg"
        args = ["--epsilon0", 0.5, "--per-person", 5500, "--people", 100]
        assert run("cost", *args, "--plot", target).exit_code == 0
        text = target.read_text()
        for part in ("Dandekar", "nats", "published", "37,805.86"):
            assert part in text

    @pytest.mark.slow
    def test_tradeoff(self, tmp_path):
        """Compose draws the trade-off of all releases together."""
        target = tmp_path / "tradeoff.svg"
        assert run("compose", "laplace:0.1x20", "--plot", target).exit_code == 0
        assert "all releases" in target.read_text()

    def test_other_suffix_is_bad_use(self, tmp_path):
        """An unknown suffix exits with 2."""
        assert run("risk", "--epsilon0", 1, "--plot", tmp_path / "x.pdf").exit_code == 2

    def test_missing_packages_are_named(self, monkeypatch):
        """Without altair the message names the extra to install, and the exit code is 1."""
        import sys

        monkeypatch.setitem(sys.modules, "altair", None)
        result = run("risk", "--epsilon0", 1, "--plot", "x.svg")
        assert result.exit_code == 1
        assert "pip install 'hushed[plot]'" in result.stderr


class TestDisjointParts:
    def test_largest_counts(self):
        """Disjoint parts cost their largest epsilon and their largest delta."""
        record = json_of(
            run("compose", "guarantee:1", "guarantee:0.5,1e-6", "--parallel", "--json")
        )
        assert record["guarantee"]["epsilon"] == 1.0
        assert record["guarantee"]["delta"] == 1e-6
        assert record["guarantee"]["neighbours"] == "add-remove"

    def test_noise_laws(self):
        """A law without a pure level is stated at the joint delta."""
        found = run("compose", "laplace:0.1", "gaussian:0.2", "--parallel", "--delta", 1e-5)
        assert found.exit_code == 0
        assert "delta = 1e-05" in found.stdout

    def test_replacement_with_private_membership(self):
        """A replaced row may leave one part and enter another: refused."""
        found = run("compose", "guarantee:1", "--parallel", "--neighbours", "replace-one")
        assert found.exit_code == 2
        assert "membership" in found.stderr

    @pytest.mark.parametrize("extra", [("--method", "basic"), ("--plot", "x.svg")])
    def test_options_that_would_be_ignored(self, extra):
        """No option is passed over in silence."""
        assert run("compose", "guarantee:1", "--parallel", *extra).exit_code == 2


class TestDataRandomness:
    def test_theorems_five_and_six(self):
        """Confidence of the data times that of the noise, by hand."""
        record = json_of(
            run(
                *("risk", "--epsilon0", 1, "--epsilon", 0.7, "--share", 0.9),
                *("--samples", 50_000, "--rho", 0.01, "--json"),
            )
        )
        data = 0.9 * (1 - 2 * math.exp(-2 * 0.01**2 * 50_000))
        noise = 1 - record["levels"][0]["published_risk"]
        assert record["data"]["confidence"] == pytest.approx(data)
        assert record["data"]["combined"] == [pytest.approx(noise * data)]

    @pytest.mark.parametrize("half", [("--share", 0.9), ("--samples", 100)])
    def test_half_a_description(self, half):
        """Share and number of pairs are needed together."""
        assert run("risk", "--epsilon0", 1, *half).exit_code == 2


@pytest.mark.parametrize(
    "command",
    [("risk", "--epsilon0", 1), ("cost", "--error", 2), ("compose", "laplace:1")],
)
@pytest.mark.parametrize("place", ["missing/x.svg", "x.txt", "."])
def test_figures_are_checked_first(command, place, tmp_path, monkeypatch):
    """A figure that cannot be written stops the command before it prints anything."""
    monkeypatch.chdir(tmp_path)
    found = run(*command, "--plot", place)
    assert found.exit_code == 2
    assert not found.stdout
