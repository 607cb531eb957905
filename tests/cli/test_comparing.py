"""The commands compare and statistic: tables, JSON, files, budgets, refusals."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.commands import ended

import hushed as hs
from hushed.cli._next_command import Compared, next_command
from hushed.cli._records import Source
from hushed.cli._statistic_options import Described

RANGE = ("--low", 0, "--high", 100)
TESTED = ("--mechanism", "propose-test", "--delta", 1e-6)
STABLE = ("--mechanism", "stable-mode", "--delta", 1e-6)
LAPLACE = ("--mechanism", "laplace")
CATEGORIES = ("--category", "a", "--category", "b")
UNIFORM = ("--population", "uniform:0,100", "--trials", 5)


@pytest.fixture
def run(tmp_path):
    """Run a command in a folder with public and private rows."""
    rng = np.random.default_rng(1)
    stays = [f"{i % 3},{v:.3f},{'abc'[i % 3]}" for i, v in enumerate(rng.uniform(0, 100, 60))]
    (tmp_path / "stays.csv").write_text("ward,stay,type\n" + "\n".join(stays) + "\n")
    (tmp_path / "one.csv").write_text("\n".join(map(str, range(1, 41))) + "\n")
    (tmp_path / "f.py").write_text("def f(rows):\n    return rows.mean()\n")
    return lambda *words: ended(*words, cwd=tmp_path)


def error_of(result):
    return json.loads(result.stdout)["error"]["message"]


def compared(result):
    return json.loads(result.stdout)["comparison"]


class TestCompare:
    def test_labels_of_a_function_are_categories(self, run, tmp_path):
        """The next command releases one of them by the votes of blocks."""
        vote = "def winner(rows):\n    return 'long' if rows.mean() > 30 else 'short'\n"
        (tmp_path / "vote.py").write_text(vote)
        labels = ("--category", "long", "--category", "short")
        result = run("compare", "vote.py:winner", *UNIFORM, "--rows", 60, *labels)
        assert result.returncode == 0, result.stderr
        assert "other label" in result.stdout
        labels = Described(category=["long", "short"])
        public = Source(population="uniform:0,100")
        told = Compared(asked="vote.py:winner", public=public, described=labels, unit="row")
        found = hs.compare(
            lambda rows: "long" if rows.mean() > 30 else "short",
            hs.populations.Uniform(low=0, high=100),
            rows=60,
            candidates=["long", "short"],
            trials=2,
        )
        command = next_command(told, replace(found, recommended="blocks, votes"))
        assert command == (
            "hushed blocks PRIVATE.csv vote.py:winner --aggregate votes --candidate long "
            "--candidate short --epsilon 1"
        )

    @pytest.mark.slow
    def test_a_statistic_is_compared_as_in_python(self, run):
        """The JSON is the record of `hs.compare` with the same parameters."""
        words = ("compare", "median", *RANGE, *UNIFORM, "--rows", 30, "--seed", 4, "--epsilon", 2)
        result = run(*words, "--json")
        assert result.returncode == 0
        found = hs.compare(
            hs.statistics.median(rows=30, low=0, high=100),
            hs.populations.Uniform(low=[0], high=[100]),
            trials=5,
            seed=4,
            epsilon=2.0,
        )
        assert hs.Comparison.from_json(json.dumps(compared(result))) == found
        assert str(found) in run(*words).stdout

    def test_a_function_is_compared(self, run):
        """It has the sampled route, and reasons for the others."""
        result = run("compare", "f.py:f", *UNIFORM, "--rows", 30, "--json")
        record = compared(result)
        assert [each["name"] for each in record["routes"]] == ["sampled, Laplace"]
        assert record["asked"] == "f of 30 rows"
        ranged = run("compare", "f.py:f", *UNIFORM, *RANGE, "--rows", 100, "--json")
        assert "blocks" in [each["name"] for each in compared(ranged)["routes"]]

    @pytest.mark.slow
    def test_a_column_of_a_public_file(self, run):
        """By name and by place; --promise says what the sampler is about."""
        words = ("compare", "quantile", "--q", 0.9, *RANGE, "--rows", 20, "--trials", 3)
        public = ("--population", "stays.csv", "--promise", "table", "--json")
        named, placed = (
            compared(run(*words, *public, "--column", column)) for column in ("stay", "2")
        )
        assert named == placed
        assert named["population"]["name"] == "stays.csv"

    def test_a_private_number_of_rows_and_a_mode_of_texts(self, run):
        """Both are about a row more or less."""
        words = ("--population", "stays.csv", "--column", "type", "--rows", 20, "--trials", 3)
        kinds = ("--category", "a", "--category", "b", "--category", "c")
        result = run("compare", "mode", *words, *kinds, "--private-count", "--json")
        record = compared(result)
        assert record["neighbours"] == "add-remove"
        assert record["categories"]

    @pytest.mark.slow
    def test_levels_and_a_figure(self, run, tmp_path):
        """--error finds levels; --plot writes a figure, and says so on standard error."""
        words = ("compare", "median", *RANGE, *UNIFORM, "--rows", 30)
        result = run(*words, "--error", 20, "--plot", "routes.svg")
        assert result.returncode == 0
        assert "epsilon" in result.stdout
        assert "routes.svg" in result.stderr
        assert "recommended" in (tmp_path / "routes.svg").read_text()

    def test_nothing_that_applies_ends_with_1(self, run):
        """An error that no route reaches."""
        result = run("compare", "f.py:f", *UNIFORM, "--rows", 30, "--error", 1e-9)
        assert result.returncode == 1
        assert "No route applies" in result.stdout

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("modus", *RANGE), "modus; did you mean 'mode'? there are median"),
            (("median",), "--low and --high"),
            (("quantile", *RANGE), "--q"),
            (("median", *RANGE, "--q", 0.3), "--q is for quantile, not for median"),
            (("mode", *RANGE, "--category", "a"), "--low and --high are for numbers"),
            (("mode",), "--category"),
            (("trimmed-mean", *RANGE, "--private-count"), "--private-count"),
            (("mean", *RANGE, "--private-count"), "--private-count: the divisor of a mean"),
            (("mean", *RANGE, "--trim", 0.2), "--trim is for trimmed-mean, not for mean"),
            (("median", *RANGE, "--column", "x"), "--column goes with a file"),
            (("median", *RANGE, "--bounds", "1:0,1"), "--bounds is for a function"),
            (("f.py:f", "--low", 0), "both ends"),
            (("f.py:f", "--q", 0.5), "--q is for a statistic"),
            (("f.py:f", "--private-count"), "--private-count is for a statistic"),
            (("median", *RANGE, "--epsilon", 1, "--error", 1), "not both"),
            (("median", *RANGE, "--plot", "x.pdf"), ".svg"),
        ],
    )
    def test_bad_use_ends_with_2(self, run, words, said):
        """Options that do not belong together, or are missing, are named."""
        result = run("compare", *words, *UNIFORM, "--rows", 30, "--json")
        assert result.returncode == 2
        assert said in error_of(result)

    @pytest.mark.parametrize(
        ("column", "said"), [(None, "name one of them"), ("bed", "no column 'bed'"), ("9", "'9'")]
    )
    def test_a_column_that_is_not_there(self, run, column, said):
        """The columns that there are, are named."""
        words = ("compare", "median", *RANGE, "--population", "stays.csv", "--rows", 9, "--json")
        result = run(*words, *(("--column", column) if column else ()))
        assert result.returncode == 2
        assert said in error_of(result)
        assert "ward" in error_of(result)

    @pytest.mark.slow
    def test_a_comparison_is_written_as_a_page(self, run, tmp_path):
        """Everything that is printed stands in it; it is replaced, and another file is not."""
        words = ("compare", "median", *RANGE, *UNIFORM, "--rows", 40, "--html", "c.html", "--json")
        for _ in range(2):
            assert run(*words).returncode == 0
        page = (tmp_path / "c.html").read_text()
        found = compared(run(*words))
        text = html.unescape(" ".join(re.sub(r"<[^>]+>", " ", page).split()))
        for said in (
            found["asked"],
            found["advice"],
            *(each["promise"] for each in found["routes"]),
            *(each["how"] for each in found["routes"]),
            *(each["reason"] for each in found["left_out"]),
        ):
            assert " ".join(said.split()) in text
        assert "<svg" in page
        assert "Certificate" not in page
        assert not re.search(r'(?:src|href)="http', page)
        (tmp_path / "c.html").write_text("mine")
        assert run(*words).returncode == 2
        assert (tmp_path / "c.html").read_text() == "mine"


class TestStatistic:
    def test_a_release_with_its_certificate(self, run, tmp_path):
        """The value is one of the candidates, the certificate says what was released."""
        words = ("statistic", "median", "stays.csv", "--column", "stay", *RANGE, "--epsilon", 50)
        result = run(*words, "--out", "c.json", "--json")
        assert result.returncode == 0
        record = json.loads(result.stdout)
        rows = np.loadtxt(tmp_path / "stays.csv", delimiter=",", skiprows=1, usecols=1)
        exact = np.sort(rows)[29]
        assert record["value"] == pytest.approx(exact, abs=5)
        known = hs.Certificate.from_json((tmp_path / "c.json").read_text())
        assert known.statistic["rows"] == 60
        assert known.guarantee == hs.Guarantee(epsilon=50.0)
        assert run("verify", "c.json").returncode == 0

    @pytest.mark.parametrize(
        ("words", "name"),
        [
            (("trimmed-mean", "one.csv", *RANGE, "--trim", 0.2, "--mechanism", "smooth"), "smooth"),
            (
                ("maximum", "one.csv", *RANGE, "--mechanism", "smooth", "--noise", "t2"),
                "smooth",
            ),
            (("mean", "one.csv", *RANGE, "--mechanism", "smooth"), "smooth"),
            (("mean", "one.csv", *RANGE, "--mechanism", "laplace"), "laplace"),
            (("median", "one.csv", *RANGE, "--mechanism", "laplace", "--private-count"), "laplace"),
            (("interquartile-range", "one.csv", *RANGE), "inverse-sensitivity"),
            (("minimum", "one.csv", *RANGE, "--private-count"), "inverse-sensitivity"),
            (
                ("mode", "stays.csv", "--column", "type", "--category", "a", "--category", "b"),
                "inverse-sensitivity",
            ),
            (
                ("mode", "stays.csv", "--column", "1", "--category", "0", "--category", "1"),
                "inverse-sensitivity",
            ),
            (("median", "one.csv", *RANGE, *TESTED, "--bound", 5), "propose-test"),
            (
                ("mode", "stays.csv", "--column", "type", *CATEGORIES, *STABLE),
                "stable-mode",
            ),
            (("median", "one.csv", *RANGE, "--candidate", 1, "--candidate", 9), "inverse-sensi"),
        ],
    )
    def test_all_statistics_and_mechanisms(self, run, words, name):
        """Each is released by the mechanism that was asked for."""
        result = run("statistic", *words, "--header", "--epsilon", 1, "--json")
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["certificate"]["mechanism"]["name"].startswith(name)

    def test_what_was_asked_for_is_what_draws(self, run):
        """Candidates, tail, smoothing, bound and slack stand in the certificate; a refusal too."""
        for words, stated in (
            (("--candidate", 20, "--candidate", 70), {"candidates": 2}),
            (
                ("--mechanism", "smooth", "--tail", 20, "--smoothing", 0.01),
                {"tail": 20, "smoothing": 0.01},
            ),
            ((*TESTED, "--bound", 1e-9), {"bound": 1e-9, "delta": 1e-6}),
        ):
            asked = ("statistic", "median", "one.csv", "--header", *RANGE, *words)
            record = json.loads(run(*asked, "--epsilon", 1, "--json").stdout)
            known = record["certificate"]["mechanism"]["parameters"]
            assert stated.items() <= known.items()
            assert (record["value"] is None) == ("bound" in stated)
            assert "candidates" not in stated or record["value"] in (20, 70)

    def test_a_budget_is_charged_and_an_answer_kept(self, run, tmp_path):
        """A key asks once; what does not fit is refused and costs nothing."""
        book = f"sqlite:///{tmp_path}/budget.db"
        with hs.Ledger(book) as ledger:
            ledger.open_budget("stays", hs.Guarantee(epsilon=1.5))
        words = ("statistic", "median", "one.csv", "--header", *RANGE)
        words += ("--ledger", book, "--budget", "stays")
        first, again = (
            json.loads(run(*words, "--epsilon", 1, "--key", "m", "--json").stdout) for _ in range(2)
        )
        assert first == again
        refused = run(*words, "--epsilon", 1)
        assert refused.returncode == 1
        with hs.Ledger(book) as ledger:
            assert ledger.balance("stays").spent.epsilon == 1.0

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("median", "one.csv", *RANGE, "--noise", "t2"), "--noise goes with"),
            (("median", "one.csv", *RANGE, "--delta", 0.1), "--mechanism propose-test or"),
            (("median", "one.csv", *RANGE, *TESTED), "needs --bound"),
            (("median", "one.csv", *RANGE, *STABLE), "StableMode takes"),
            (("mean", "one.csv", *RANGE, "--mechanism", "laplace", "--tail", 5), "--tail goes"),
            (("mode", "stays.csv", *CATEGORIES, "--column", "type", *LAPLACE), "are no numbers"),
            (("median", "one.csv", *RANGE, *TESTED, "--bound", 900), "--bound"),
            (("median", "one.csv", *RANGE, "--candidate", 900), "--candidate"),
            (("median", "one.csv", *RANGE, "--key", "k"), "--ledger"),
            (("median", "none.csv", *RANGE), "there is no file"),
            (("median", "stays.csv", *RANGE), "name one of them"),
            (("mode", "stays.csv", "--column", "type"), "give --category for each"),
            (("median", "one.csv", "--low", 5, "--high", 5), "--high"),
        ],
    )
    def test_bad_use_ends_with_2(self, run, words, said):
        """Nothing is released."""
        result = run("statistic", *words, "--header", "--epsilon", 1, "--json")
        assert result.returncode == 2
        assert said in error_of(result)

    def test_a_text_among_numbers_is_answered_and_not_shown(self, run, tmp_path):
        """A refusal would tell of one row, unpaid; it counts as the low end."""
        secret = [f"{i},{'diabetes' if i == 7 else i}" for i in range(20)]
        (tmp_path / "s.csv").write_text("id,value\n" + "\n".join(secret) + "\n")
        result = run("statistic", "median", "s.csv", "--column", "value", *RANGE, "--epsilon", 1)
        assert result.returncode == 0
        assert "diabetes" not in result.stderr + result.stdout


def test_both_have_an_example_in_their_help(run):
    """So that a first use need not be guessed."""
    for name in ("compare", "statistic"):
        said = run(name, "--help").stdout
        assert "Example: hushed" in said


@pytest.mark.slow_cases("words1", "words2", "words3")
@pytest.mark.parametrize(
    "words",
    [
        ("median", *RANGE),
        ("quantile", "--q", 0.9, *RANGE, "--unit", "person"),
        ("mean", *RANGE, "--worth", 50),
        ("mode", *CATEGORIES, "--column", "type", "--delta", 1e-6),
    ],
)
def test_the_recommended_way_is_given_as_the_next_command(run, words):
    """It runs as it is printed, with the private file named, and releases."""
    source = ("--population", "stays.csv") if words[0] == "mode" else UNIFORM
    more = () if words[0] == "mode" else ("--column", "stay")
    rows = 60 if words[0] == "mode" else 50
    said = run("compare", *words, *source, "--rows", rows, "--epsilon", 2)
    command = re.search(r"Next, on the private rows: hushed (.*)", said.stdout)
    assert command is not None, said.stdout + said.stderr
    told = run(*command[1].replace("PRIVATE.csv", "stays.csv").split(), *more)
    assert told.returncode == 0, told.stderr
    assert "epsilon = 2," in told.stdout


def read_next(said):
    """The command that a comparison ends with, without its first word."""
    found = re.search(r"Next, on the private rows: hushed (.*)", said.stdout)
    assert found is not None, said.stdout + said.stderr
    return found[1]


def test_a_function_leads_to_its_release(run):
    """Sampled, as it was compared: the population, the mechanism and gamma are in the command."""
    words = ("--rows", 50, "--epsilon", 2, "--gamma", 0.1, "--worth", 1, "--no-header")
    command = read_next(run("compare", "f.py:f", *UNIFORM, *words))
    assert command.startswith("release PRIVATE.csv f.py:f --population uniform:")
    told = run(*command.replace("PRIVATE.csv", "one.csv").split())
    assert told.returncode == 0, told.stderr
    assert "epsilon = 2, delta = 0, gamma = 0.1" in told.stdout


def test_vectors_lead_to_their_release(run, tmp_path):
    """With the ball and the number of blocks that were compared; averages have another way."""
    file = tmp_path / "vectors.py"
    file.write_text("def spread(rows): return [rows.min(), rows.max()]\n")
    words = ["compare", f"{file}:spread", "--population", "uniform:0,1", "--rows", "200"]
    ball = ["--centre=-0.5", "--centre=1.5", "--radius", "2", "--delta", "1e-6", "--blocks", "60"]
    found = run(*words, *ball, "--trials", "3", "--worth", "1000", "--json")
    made = json.loads(found.stdout)
    assert made["comparison"]["recommended"] == "blocks, vectors"
    assert made["next"].endswith(
        "--aggregate vector --centre=-0.5 --centre=1.5 --radius 2 --blocks 60 --delta 1e-06 "
        "--epsilon 1"
    )
    average = ["--block-rows", "20", "--gamma", "0.5", "--trials", "3", "--json"]
    made = json.loads(run(*words, *average).stdout)
    assert "--block-rows 20" in made["next"]


@pytest.mark.slow
def test_a_query_is_the_next_command_where_it_is_recommended(run):
    """It names the column with its type; where none was named, COLUMN stands for it."""
    statistic = hs.statistics.median(rows=50, low=0, high=100)
    public = hs.populations.Uniform(low=[0], high=[100])
    found = hs.compare(statistic, public, trials=2, epsilon=2.0)
    found = replace(found, recommended="table query")
    wanted = "hushed query PRIVATE.csv --type {0}=float --median {0}:0:100 --epsilon 2"
    for column in ("stay", None):
        told = Compared(
            asked="median",
            public=Source(population="uniform:0,100"),
            described=Described(low=0.0, high=100.0, column=column),
            unit="row",
        )
        assert next_command(told, found) == wanted.format(column or "COLUMN")
    done = run(*wanted.format("stay").replace("PRIVATE.csv", "stays.csv").split()[1:])
    assert done.returncode == 0, done.stderr


@pytest.mark.slow_cases(", range searched-search")
@pytest.mark.parametrize(("way", "high"), [("", "100"), (", range searched", "search")])
def test_a_mean_is_released_by_the_query_that_was_compared(run, way, high):
    """The command that is named runs."""
    described = Described(low=0.0, high=100.0, column="stay")
    public = Source(population="uniform:0,100")
    told = Compared(asked="mean", public=public, described=described, unit="row")
    s = hs.statistics.mean(rows=60, low=0, high=100)
    found = hs.compare(s, hs.populations.Uniform(low=0, high=100), trials=2)
    command = next_command(told, replace(found, recommended=f"table query{way}"))
    assert command == (
        f"hushed query PRIVATE.csv --type stay=float --mean stay:0:{high} --epsilon 1"
    )
    done = run(*command.replace("PRIVATE.csv", "stays.csv").split()[1:])
    assert done.returncode == 0, done.stderr


def test_a_mean_that_trims_nothing_is_no_median():
    """It is a mean of the query, too."""
    described = Described(low=0.0, high=100.0, column="stay", trim=0.0)
    public = Source(population="uniform:0,100")
    told = Compared(asked="trimmed-mean", public=public, described=described, unit="row")
    s = hs.statistics.mean(rows=60, low=0, high=100)
    found = hs.compare(s, hs.populations.Uniform(low=0, high=100), trials=2, workers=1)
    command = next_command(told, replace(found, recommended="table query"))
    assert "--mean stay:0:100" in command


@pytest.mark.slow
def test_categories_of_a_function_are_labels_if_they_are_numbers(run, tmp_path):
    """The share of other labels is compared, as in Python, and the next command releases one."""
    vote = "def winner(rows):\n    return 3 if rows.mean() > 30 else 1\n"
    (tmp_path / "vote.py").write_text(vote)
    labels = [word for each in "123" for word in ("--category", each)]
    result = run("compare", "vote.py:winner", *UNIFORM, "--rows", 60, *labels, "--json")
    assert result.returncode == 0, result.stderr
    assert compared(result)["labels"] is True
    told = Compared(
        asked="vote.py:winner",
        public=Source(population="uniform:0,100"),
        described=Described(category=["1", "2", "3"]),
        unit="row",
    )
    uniform = hs.populations.Uniform(low=0, high=100)
    given = {"candidates": [1, 2, 3], "labels": True, "trials": 2, "workers": 1}
    found = hs.compare(lambda rows: 3 if rows.mean() > 30 else 1, uniform, rows=60, **given)
    command = next_command(told, replace(found, recommended="blocks, votes")).split()
    assert command[:4] == ["hushed", "blocks", "PRIVATE.csv", "vote.py:winner"]
    assert "--candidate 1 --candidate 2 --candidate 3" in " ".join(command)
    (tmp_path / "PRIVATE.csv").write_text("\n".join(["50"] * 60) + "\n")
    released = run(*command[1:], "--no-header", "--columns", 1, "--json")
    assert released.returncode == 0, released.stderr
    assert json.loads(released.stdout)["value"] in (1, 2, 3)
    (tmp_path / "vote.py").write_text("def winner(rows):\n    return '3'\n")
    result = run("compare", "vote.py:winner", *UNIFORM, "--rows", 60, *labels)
    assert result.returncode == 1
    assert "no text, also none of digits, is one of them" in " ".join(result.stderr.split())


def test_smooth_noise_is_chosen_on_a_public_population(run):
    """Law, tail and smoothing are those of `hs.Smooth.for_population`; a release says them."""
    words = ("statistic", "trimmed-mean", "one.csv", "--no-header", *RANGE, "--epsilon", 1)
    words += ("--mechanism", "smooth")
    chosen = []
    for noise in (None, "lomax"):
        more = () if noise is None else ("--noise", noise)
        result = run(*words, "--population", "uniform:0,100", *more, "--json")
        assert result.returncode == 0, result.stderr
        law = json.loads(result.stdout)["certificate"]["mechanism"]["parameters"]
        chosen.append((law["noise"], law.get("tail"), law.get("smoothing")))
        s = hs.statistics.trimmed_mean(0.1, rows=40, low=0, high=100)
        public = hs.populations.Uniform(low=[0], high=[100])
        made = hs.Smooth.for_population(s, public, epsilon=1.0, noise=noise)
        assert chosen[-1] == (made.noise, made.tail, made.smoothing)
    assert chosen[0] != ("lomax", 5, None)  # what it is without a population


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--mechanism", "inverse"), "goes with --mechanism smooth"),
        (("--mechanism", "smooth", "--tail", 5), "leave --tail and --smoothing out"),
        (("--mechanism", "smooth", "--private-count"), "public number of rows"),
        (("--mechanism", "smooth", "--no-header", "--bound", 3), "--bound goes with"),
        (("--mechanism", "smooth", "--no-header", "--delta", 1e-6), "--delta goes with"),
    ],
)
def test_a_population_goes_with_smooth_noise_alone(run, more, said):
    """And it chooses what else could be given."""
    words = ("statistic", "median", "one.csv", *RANGE, "--epsilon", 1, *more)
    result = run(*words, "--population", "uniform:0,100", "--json")
    assert result.returncode in (1, 2)
    assert said in error_of(result)


def test_private_rows_are_no_population(run):
    """The file that is released cannot be the one that the noise is chosen by."""
    words = ("statistic", "median", "one.csv", "--no-header", *RANGE, "--epsilon", 1)
    words += ("--mechanism", "smooth")
    result = run(*words, "--population", "one.csv", "--promise", "table", "--json")
    assert result.returncode == 1, result.stdout
    assert "private" in error_of(result)


def test_smooth_noise_is_released_with_the_parameters_that_were_compared(run):
    """Those of a population are not the ones that the command takes by default."""
    statistic = hs.statistics.trimmed_mean(rows=50, low=0, high=100)
    public = hs.populations.Uniform(low=[0], high=[100])
    found = hs.compare(statistic, public, trials=2, epsilon=2.0)
    for name in ("smooth, lomax", "smooth, t2"):
        (route,) = [each for each in found.routes if each.name == name]
        compared = eval(route.how, {"hs": hs, "s": statistic})
        assert compared != hs.Smooth(statistic, epsilon=2.0, noise=compared.noise)
        told = Compared(
            asked="trimmed-mean",
            public=Source(population="uniform:0,100"),
            described=Described(low=0.0, high=100.0, column="stay"),
            unit="row",
        )
        command = next_command(told, replace(found, recommended=name))
        words = command.replace("PRIVATE.csv", "stays.csv").split()[1:]
        done = run(*words, "--json")
        assert done.returncode == 0, done.stderr
        noise = json.loads(done.stdout)["certificate"]["mechanism"]["parameters"]
        assert (noise.get("tail"), noise.get("smoothing")) == (compared.tail, compared.smoothing)


def test_a_way_that_no_command_has_gives_no_next_command(run):
    """Nothing that applies is nothing to go on with."""
    said = run("compare", "f.py:f", *UNIFORM, "--rows", 2, "--epsilon", 2, "--gamma", 1e-9)
    assert "Next, on" not in said.stdout


def test_an_option_that_the_command_finds_out_itself_is_not_guessed_at(run):
    """``--rows`` belongs to ``compare``; ``hushed statistic`` counts the file."""
    for option, advice in (("--rows", "the rows of the file are counted"), ("--hihg", "'--high'")):
        said = " ".join(run("statistic", "median", "one.csv", option, 5).stderr.split())
        assert advice in said.replace("│ ", "")
        assert "'--noise'" not in said
