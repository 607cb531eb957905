"""The command line: what it prints, what it refuses, and with which exit code."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import hushed
from hushed.cli import COMMANDS, app

CANARY = "987654.321"

FUNCTIONS = """
import numpy as np

def center(rows):
    return np.median(rows[:, 0])

def line(rows):
    return np.array([rows[:, 0].mean(), rows[:, 1].mean()])

def by_name(frame):
    return float(frame["age"].mean())

def fails_on_outliers(rows):
    if rows.max() > 900_000:
        raise ValueError(f"cannot handle {rows.max()}")
    return rows.mean()

def distribution(rows):
    return lambda x: np.array([(rows[:, 0] <= 20 + 60 * at).mean() for at in x])

def simulate(rng, count):
    return rng.uniform(20, 80, size=(count, 2))

def counts(rows):
    return np.histogram(rows[:, 0], bins=[0, 40, 60, 100])[0].astype(float)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(FUNCTIONS)
    rows = [f"{20 + (i * 37) % 60},{1000 + (i * 91) % 500}" for i in range(120)]
    (tmp_path / "private.csv").write_text("age,income\n" + "\n".join(rows) + "\n")
    public = [f"{20 + (i * 41) % 60}.5,{1000 + (i * 83) % 500}" for i in range(90)]
    (tmp_path / "public.csv").write_text("age,income\n" + "\n".join(public) + "\n")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def refused(*arguments, code):
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    return done.stderr


PUBLIC = ("--population", "public.csv", "--promise", "table")
RELEASE = ("release", "private.csv", "f.py:line", *PUBLIC, "--epsilon", 1)


class TestSensitivity:
    def test_json_is_one_object_and_nothing_else(self, folder):
        """Standard output holds one JSON object with the sensitivity and its ranks."""
        done = run(
            "sensitivity", "f.py:center", "--population", "uniform:0,100", "--rows", 50, "--json"
        )
        found = json.loads(done.stdout)
        assert (found["pairs"], found["rank"], found["gamma"]) == (112, 112, 0.05)
        assert 0 < found["sensitivity"] < 100

    def test_a_trial_tells_how_long_the_sampling_may_take(self, folder):
        """In words, and with --json as numbers; nothing is sampled or kept."""
        asked = ("sensitivity", "f.py:center", "--population", "uniform:0,100", "--rows", 50)
        done = run(*asked, "--trial", "--keep", "kept")
        assert "on one processor: 112 pairs, about 292 calls" in done.stdout
        assert not Path("kept").exists()
        found = json.loads(run(*asked, "--trial", "--neighbours", "add-remove", "--json").stdout)
        assert (found["pairs"], found["calls"], found["seconds"] > 0) == (112, 438, True)
        assert "leave one" in refused(*asked, "--trial", "--protect", "table", code=2)

    @pytest.mark.parametrize(
        "population",
        [
            *("uniform:0,1:5,6", "normal:0,1:2,3", "exponential:1:2", "f.py:simulate"),
            "public.csv --promise table",
        ],
    )
    def test_every_kind_of_population(self, folder, population):
        """Ranges, laws, files and simulators can be named; each yields two columns here."""
        done = run("sensitivity", "f.py:line", "--rows", 20, "--population", *population.split())
        assert done.exit_code == 0, done.stderr
        assert "number 112 of 112 sampled movements" in done.stdout

    @pytest.mark.parametrize("population", ["uniform:0:1", "normal:3", "exponential:1,2"])
    def test_a_population_in_another_spelling_is_answered_with_the_right_one(
        self, folder, population
    ):
        """A colon is between columns, a comma between the numbers of one."""
        asked = ("sensitivity", "f.py:line", "--rows", 20, "--population", population)
        message = refused(*asked, code=2)
        assert f"got {population}" in message
        kind = population.split(":")[0]
        assert (
            f"{kind}:{ {'uniform': 'LOW,HIGH', 'normal': 'MEAN,STD'}.get(kind, 'RATE') }" in message
        )

    def test_missing_function_lists_what_is_there(self, folder):
        """A wrong name is answered with the names that exist."""
        message = refused(
            "sensitivity", "f.py:nope", "--population", "uniform:0,1", "--rows", 9, code=2
        )
        assert "'nope'" in message
        assert "center" in message
        assert "np" not in message.split("defines")[-1].split(", ")

    def test_missing_file_lists_python_files(self, folder):
        """A wrong file is answered with the Python files beside it."""
        message = refused(
            "sensitivity", "g.py:center", "--population", "uniform:0,1", "--rows", 9, code=2
        )
        assert "f.py" in message

    @pytest.mark.parametrize(
        ("population", "word"),
        [
            ("uniform:0", "2 number"),
            ("uniform:1,x", "not a number"),
            ("uniform:3,1", "low must not exceed"),
            ("nowhere.csv", "no such file"),
        ],
    )
    def test_bad_population(self, folder, population, word):
        """What is wrong with a population is said, with exit code 2."""
        message = refused(
            "sensitivity", "f.py:center", "--population", population, "--rows", 9, code=2
        )
        assert word in message

    def test_too_few_pairs_says_how_many(self, folder):
        """The number of pairs that suffices is in the message."""
        message = refused(
            *("sensitivity", "f.py:center", "--population", "uniform:0,1", "--rows", 9),
            *("--gamma", 0.05, "--pairs", 100),
            code=2,
        )
        assert "112" in message


class TestRelease:
    @pytest.mark.slow
    def test_value_certificate_and_page(self, folder):
        """The answer, its certificate and a page without outside references are written."""
        done = run(*RELEASE, "--out", "c.json", "--html", "c.html", "--json")
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)
        assert len(found["value"]) == 2
        assert json.loads((folder / "c.json").read_text()) == found["certificate"]
        page = (folder / "c.html").read_text()
        assert "<svg" in page
        assert "src=" not in page
        assert "<link" not in page
        assert "kept: number 112 of 112" in page

    def test_verify_reproduces(self, folder):
        """The certificate reproduces with the same function and not with another."""
        run(*RELEASE, "--out", "c.json")
        same = run("verify", "c.json", "f.py:line", "--population", "public.csv")
        assert same.exit_code == 0
        assert "bit for bit" in same.stdout
        other = run("verify", "c.json", "f.py:center", "--population", "public.csv", "--json")
        assert other.exit_code == 1
        assert json.loads(other.stdout)["reproduced"] is False
        assert "--population" in refused("verify", "c.json", "f.py:line", code=2)

    def test_a_page_needs_no_function(self, folder):
        """Whoever has the file alone gets a page, and is told what was not checked."""
        run(*RELEASE, "--out", "c.json")
        done = run("verify", "c.json", "--html", "v.html")
        assert done.exit_code == 2
        assert "not checked: its sampling and its numbers: give the function" in done.stdout
        assert "<svg" in Path("v.html").read_text()
        text = Path("c.json").read_text().replace('"gamma": 0.05', '"gamma": 0.01', 1)
        Path("d.json").write_text(text)
        assert run("verify", "d.json", "--html", "w.html").exit_code == 1
        assert not Path("w.html").exists()

    def test_gaussian_needs_delta_before_any_sampling(self, folder):
        """A missing delta is found at once."""
        message = refused(*RELEASE, "--mechanism", "gaussian", code=2)
        assert "delta" in message

    def test_exponential_releases_an_index(self, folder):
        """A choice is released as the index of the candidate."""
        done = run(
            *("release", "private.csv", "f.py:counts", "--population", "f.py:simulate", "--header"),
            *("--epsilon", 5, "--mechanism", "exponential", "--json"),
        )
        assert json.loads(done.stdout)["value"] in (0, 1, 2)

    @pytest.mark.parametrize("frame", ["pandas", "polars"])
    def test_frames(self, folder, frame):
        """A function of named columns gets a frame."""
        done = run(
            *("release", "private.csv", "f.py:by_name", *PUBLIC),
            *("--epsilon", 1, "--frame", frame),
        )
        assert done.exit_code == 0, done.stderr

    @pytest.mark.parametrize(
        ("option", "value"),
        [("--epsilon", 0), ("--epsilon", "nan"), ("--gamma", 1.5), ("--gamma", "nan")],
    )
    def test_numbers_out_of_range(self, folder, option, value):
        """Numbers outside their range are bad use."""
        words = RELEASE[:-2] if option == "--epsilon" else RELEASE
        assert "must" in refused(*words, option, value, code=2)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("age,income\n30,1\n31,\n", ["'income'", "row 2", "missing"]),
            ("age,income\n30,1\n31,Alice\n", ["'income'", "row 2", "text"]),
            ("age,income\n30,1\n31,nan\n", ["'income'", "row 2", "NaN"]),
            ("age,income\n30,1\n31,inf\n", ["'income'", "row 2", "infinity"]),
            ("age,income\n30,1\n31\n", ["row 2", "1 cells"]),
            ("age,income\n", ["no rows"]),
            ("age,age\n1,2\n", ["twice"]),
        ],
    )
    def test_bad_cells_of_a_public_file_are_named(self, folder, text, words):
        """Column and row number are named, the value is not."""
        (folder / "public.csv").write_text(text)
        message = refused(*RELEASE, code=2)
        assert all(word in message for word in words)
        assert "Alice" not in message

    def test_other_columns_are_refused(self, folder):
        """Public and private tables must have the same columns in the same order."""
        text = (folder / "public.csv").read_text().replace("age,income", "income,age")
        (folder / "public.csv").write_text(text)
        assert "columns income, age" in refused(*RELEASE, code=2)

    def test_private_rows_as_population(self, folder):
        """The private file as public table is refused unless admitted, and then marked."""
        arguments = [a if a != "public.csv" else "private.csv" for a in RELEASE]
        assert "leaks" in refused(*arguments, code=1)
        done = run(*arguments, "--data-dependent")
        assert done.exit_code == 0
        assert "NOT A PRIVACY GUARANTEE" in done.stdout

    def test_failure_on_private_rows_shows_no_value(self, folder):
        """A function that fails on the private rows is reported by type alone."""
        rows = (folder / "private.csv").read_text().splitlines()
        rows[5] = f"30,{CANARY}"
        (folder / "private.csv").write_text("\n".join(rows))
        arguments = [a if a != "f.py:line" else "f.py:fails_on_outliers" for a in RELEASE]
        done = run(*arguments, "--json")
        assert done.exit_code == 1
        assert "ValueError" in done.stderr
        assert CANARY not in done.output
        assert json.loads(done.stdout)["error"]["type"] == "BadFunction"


def test_released_numbers_are_not_the_exact_ones(folder):
    """Two releases of the same answer differ: there is noise, and it is fresh."""
    values = [json.loads(run(*RELEASE, "--json").stdout)["value"] for _ in range(2)]
    assert values[0] != values[1]


class TestHeaders:
    def test_text_without_header_is_not_taken_for_names(self, folder):
        """A first record of text is neither dropped nor printed: the user is asked."""
        (folder / "private.csv").write_text("Alice,north\nBob,south\n")
        message = refused(*RELEASE, "--frame", "pandas", code=2)
        assert "--no-header" in message
        assert "Alice" not in message
        assert "north" not in message

    def test_first_record_counts_without_a_header(self, folder):
        """That a file of numbers has no header has to be said; then all its rows are records."""
        for name in ("private.csv", "public.csv"):
            lines = (folder / name).read_text().splitlines()
            (folder / name).write_text("\n".join(lines[1:]) + "\n")
        assert "say --header or --no-header" in refused(*RELEASE, code=2)
        told = run(*RELEASE, "--json", "--no-header")
        assert json.loads(told.stdout)["certificate"]["sampling"]["rows"] == 120
        assert "no header found" not in told.stderr

    def test_header_can_be_stated(self, folder):
        """--header takes the first row for names even if it holds a number."""
        for name in ("private.csv", "public.csv"):
            text = (folder / name).read_text().replace("age,income", "age,2019")
            (folder / name).write_text(text)
        assert "text in row 1" in refused(*RELEASE, code=2)
        done = run(*RELEASE, "--header", "--json")
        assert json.loads(done.stdout)["certificate"]["sampling"]["rows"] == 120

    def test_both_files_or_none(self, folder):
        """A public file with a header and a private one without are refused."""
        text = (folder / "private.csv").read_text()
        (folder / "private.csv").write_text(text.partition("\n")[2])
        assert "the first row of the private one" in refused(*RELEASE, code=2)

    def test_private_names_stay_private(self, folder):
        """Names that only the private file has are not printed, in no kind of error."""
        text = (folder / "private.csv").read_text()
        (folder / "private.csv").write_text(text.replace("income", "hiv"))
        message = refused(*RELEASE, code=2)
        assert "age, income" in message
        assert "column 2" in message
        assert "hiv" not in message
        wide = [a for a in RELEASE if a not in PUBLIC]
        wide += ["--population", "uniform:0,100:0,2000"]
        assert "hiv" not in refused(*wide, "--user", "sex", code=2)

    def test_a_longer_header_differs_after_the_public_one(self, folder):
        """A further private column is told by its position."""
        text = (folder / "private.csv").read_text()
        longer = text.replace("\n", ",7\n").replace("income,7", "income,hiv")
        (folder / "private.csv").write_text(longer)
        message = refused(*RELEASE, code=2)
        assert "column 3" in message
        assert "hiv" not in message

    def test_parquet_always_has_one(self, folder):
        """--no-header does not go with a Parquet file."""
        polars = pytest.importorskip("polars")
        polars.read_csv("private.csv").write_parquet("private.parquet")
        assert "always names" in refused(
            *("release", "private.parquet", "f.py:line", "--population", "uniform:0,1:0,1"),
            *("--epsilon", 1, "--no-header"),
            code=2,
        )

    def test_broken_parquet_shows_nothing(self, folder):
        """A damaged Parquet file is bad rows, none of its bytes shown."""
        pytest.importorskip("polars")
        (folder / "private.parquet").write_text("PAR1 Alice PAR1")
        message = refused("release", "private.parquet", *RELEASE[2:], code=2)
        assert message.startswith("BadRows")
        assert "Alice" not in message


class TestWrittenFiles:
    @pytest.mark.parametrize("option", ["--out", "--html"])
    @pytest.mark.parametrize("target", ["private.csv", "public.csv", "f.py", "./private.csv"])
    def test_inputs_are_never_overwritten(self, folder, option, target):
        """A target that is read by the same command is refused, --force or not."""
        before = (folder / target).read_text()
        assert "an input" in refused(*RELEASE, option, target, "--force", code=2)
        assert (folder / target).read_text() == before

    def test_a_link_to_an_input_is_an_input(self, folder):
        """Hard links and symbolic links are seen through."""
        (folder / "soft.json").symlink_to(folder / "private.csv")
        (folder / "hard.json").hardlink_to(folder / "private.csv")
        for name in ("soft.json", "hard.json"):
            assert "an input" in refused(*RELEASE, "--out", name, "--force", code=2)

    def test_two_targets_are_two_files(self, folder):
        """--out and --html must differ."""
        assert "--out" in refused(*RELEASE, "--out", "c", "--html", "./c", code=2)

    @pytest.mark.parametrize("name", ["c.pdf", "c.json", "c.PNG"])
    def test_a_page_has_the_name_of_a_page(self, folder, name):
        """A page that was written as c.pdf opened nowhere."""
        assert "its name ends in .html" in refused(*RELEASE, "--html", name, code=2)
        assert not (folder / name).exists()

    def test_places_that_cannot_be_written(self, folder, monkeypatch):
        """A missing folder, a folder as target and a locked folder are found before sampling."""
        assert "no folder" in refused(*RELEASE, "--out", "nowhere/c.json", code=2)
        assert "is a folder" in refused(*RELEASE, "--out", ".", code=2)
        locked = SimpleNamespace(access=lambda path, mode: False, W_OK=os.W_OK, path=os.path)
        monkeypatch.setattr("hushed.cli._written.os", locked)
        assert "not writable" in refused(*RELEASE, "--out", "c.json", code=2)

    @pytest.mark.slow
    def test_other_files_need_force(self, folder):
        """A file that is not a certificate is replaced with --force alone; a former one always."""
        (folder / "c.json").write_text("my notes")
        (folder / "c.html").write_text("<title>my page</title>")
        files = ("--out", "c.json", "--html", "c.html")
        assert "--force" in refused(*RELEASE, "--out", "c.json", code=2)
        assert "--force" in refused(*RELEASE, "--html", "c.html", code=2)
        assert (folder / "c.json").read_text() == "my notes"
        assert run(*RELEASE, *files, "--force").exit_code == 0
        assert run(*RELEASE, *files).exit_code == 0

    def test_html_without_the_extra(self, folder, monkeypatch):
        """A page that cannot be drawn is refused before the release."""
        monkeypatch.setitem(sys.modules, "altair", None)
        assert "hushed[plot]" in refused(*RELEASE, "--html", "c.html", code=1)

    def test_the_value_is_printed_before_a_failing_write(self, folder, monkeypatch):
        """If writing fails after the draw, the paid answer is on standard output all the same."""

        def full(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("hushed.cli._delivery.write_whole", full)
        done = run(*RELEASE, "--out", "c.json", "--json")
        assert done.exit_code == 2
        assert len(json.loads(done.stdout)["value"]) == 2
        assert "OSError: No space left on device" in done.stderr


class TestEnds:
    def test_system_errors_are_bad_use(self, folder, monkeypatch):
        """An error of the operating system is told by type and reason, as JSON too."""

        def locked(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied", CANARY)

        monkeypatch.setattr("hushed.cli._tables.Path.open", locked)
        done = run(*RELEASE, "--json")
        assert done.exit_code == 2
        found = json.loads(done.stdout)["error"]
        assert found == {
            "kind": "system",
            "type": "PermissionError",
            "message": "Permission denied",
        }
        assert CANARY not in done.output

    @pytest.mark.parametrize("options", [("--json",), ()])
    def test_unforeseen_errors_are_withheld(self, options, folder, monkeypatch):
        """An unforeseen exception gives its type and place, no message, and exit code 3."""

        def broken(*_, **__):
            raise RuntimeError(CANARY)

        monkeypatch.setattr("hushed.release", broken)
        done = run(*RELEASE, *options)
        assert done.exit_code == 3
        assert "RuntimeError in _releasing.py" in done.stderr
        if options:
            assert json.loads(done.stdout)["error"]["type"] == "RuntimeError"
        assert CANARY not in done.output

    def test_a_function_file_that_exits(self, folder):
        """sys.exit at load is a failure of the file, not the end of the command."""
        (folder / "f.py").write_text("import sys\nsys.exit(0)\n")
        assert "SystemExit" in refused(*RELEASE, code=2)

    def test_a_certificate_that_is_no_text(self, folder):
        """Bytes that are not UTF-8 are no certificate."""
        (folder / "c.json").write_bytes(b"\xff\xfe\x00")
        message = refused("verify", "c.json", "f.py:line", code=2)
        assert message.startswith("ParameterError")

    def test_admission_is_named_as_on_the_command_line(self, folder):
        """Where the library says data_dependent=True, the command line says its option."""
        arguments = [a if a != "public.csv" else "private.csv" for a in RELEASE]
        assert "--data-dependent" in refused(*arguments, code=1)

    def test_version(self):
        """--version prints the version of the package."""
        assert run("--version").stdout == f"hushed {version('hushed')}\n"
        assert hushed.__version__ == version("hushed")

    def test_python_m(self):
        """`python -m hushed` is the command."""
        command = [sys.executable, "-m", "hushed", "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == run("--version").stdout

    @pytest.mark.parametrize("name", COMMANDS)
    def test_short_help(self, name):
        """-h is --help, for the commands and for the commands below them."""
        assert run(name, "-h").stdout == run(name, "--help").stdout

    @pytest.mark.parametrize("words", [(), ("query",), ("ledger",), ("ledger", "show")])
    def test_a_flag_shows_no_type(self, words):
        """A flag takes no value; what takes one says of which type."""
        said = run(*words, "-h").stdout
        assert "<bool>" not in said
        assert "Show this message and exit." in said
        assert ("<float>" in said) == (words == ("query",))

    def test_the_shell_completes_commands_and_options(self, monkeypatch):
        """A tab gives names of commands, and options of a command that is loaded for it."""
        monkeypatch.setenv("_HUSHED_COMPLETE", "complete_bash")
        for words, expected in {
            "hushed aud": "audit",
            "hushed audit --conf": "--confidence",
        }.items():
            monkeypatch.setenv("COMP_WORDS", words)
            monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
            assert expected in CliRunner().invoke(app, [], prog_name="hushed").stdout.split()

    @pytest.mark.slow
    @pytest.mark.parametrize("workers", [1, 2])
    def test_sigterm_cleans_up(self, tmp_path, workers):
        """SIGTERM ends with 130, no worker lives on and no temporary folder is left."""
        (tmp_path / "slow.py").write_text(
            "import os, pathlib, time\n"
            "def slow(rows):\n"
            "    pathlib.Path('pid', str(os.getpid())).touch()\n"
            "    time.sleep(0.05)\n"
            "    return rows.mean()\n"
        )
        (tmp_path / "pid").mkdir()
        (tmp_path / "scratch").mkdir()
        command = [
            *(sys.executable, "-c", "from hushed.cli import main; main()", "sensitivity"),
            *("slow.py:slow", "--population", "uniform:0,1", "--rows", "9", "--pairs", "100000"),
            *("--workers", str(workers)),
        ]
        environment = {**os.environ, "JOBLIB_TEMP_FOLDER": str(tmp_path / "scratch")}
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            wanted = 1 if workers == 1 else workers + 1
            until = time.monotonic() + 60
            while len(list((tmp_path / "pid").iterdir())) < wanted and time.monotonic() < until:
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert b"nothing was released" in err
        assert out == b""
        pids = [int(path.name) for path in (tmp_path / "pid").iterdir()]
        assert len(pids) >= wanted
        until = time.monotonic() + 60
        while any(map(alive, pids)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(map(alive, pids))
        assert list((tmp_path / "scratch").iterdir()) == []


def alive(pid):
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_a_warning_of_the_library_is_shown_in_its_words():
    """And not with a line of the package that reads options, which nobody here has written."""
    code = (
        "import warnings\n"
        "from hushed.cli._outcome import finish\n"
        "from hushed.errors import HushedWarning\n"
        "with finish(json=True):\n"
        "    warnings.warn(HushedWarning('it waits'))\n"
        "    warnings.warn('of another library')\n"
        "warnings.warn(HushedWarning('outside'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[0] == "warning: it waits"
    assert "UserWarning: of another library" in done.stderr
    assert "HushedWarning: outside" in done.stderr
    assert done.stdout == "{}\n"


class TestTargets:
    def test_error_instead_of_epsilon(self, folder):
        """--error finds the epsilon whose 95 % (or other) accuracy is just that error."""
        arguments = [a for a in RELEASE if a not in ("--epsilon", 1)]
        done = run(*arguments, "--error", 50, "--json")
        found = json.loads(done.stdout)["certificate"]
        assert 0.999 * 50 < found["mechanism"]["accuracy"] <= 50
        wider = run(*arguments, "--error", 50, "--beta", 0.5, "--json")
        easier = json.loads(wider.stdout)["certificate"]
        assert easier["guarantee"]["epsilon"] < found["guarantee"]["epsilon"]

    @pytest.mark.slow
    def test_error_for_the_gaussian_needs_delta(self, folder):
        """The Gaussian takes an error together with its slack."""
        arguments = [a for a in RELEASE if a not in ("--epsilon", 1)]
        arguments += ["--error", 50, "--mechanism", "gaussian"]
        assert "delta" in refused(*arguments, code=2)
        done = run(*arguments, "--delta", 1e-6, "--json")
        assert 0.99 * 50 < json.loads(done.stdout)["certificate"]["mechanism"]["accuracy"] <= 50

    @pytest.mark.parametrize(
        ("mechanism", "function"), [("exponential", "counts"), ("bernstein", "distribution")]
    )
    def test_error_for_every_mechanism(self, folder, mechanism, function):
        """The accuracy in the certificate is the error that was asked for, from below."""
        done = run(
            *(
                "release",
                "private.csv",
                f"f.py:{function}",
                "--population",
                "f.py:simulate",
                "--header",
            ),
            *("--error", 7.5, "--mechanism", mechanism, "--json"),
        )
        assert done.exit_code == 0, done.stderr
        certificate = json.loads(done.stdout)["certificate"]
        assert 0.999 * 7.5 < certificate["mechanism"]["accuracy"] <= 7.5

    def test_one_of_epsilon_and_error(self, folder):
        """Both, or none, is bad use; so is --beta alone, and an error of 0."""
        arguments = [a for a in RELEASE if a not in ("--epsilon", 1)]
        assert "one of the two" in refused(*arguments, code=2)
        assert "one of the two" in refused(*RELEASE, "--error", 3, code=2)
        assert "--beta" in refused(*RELEASE, "--beta", 0.1, code=2)
        assert "error" in refused(*arguments, "--error", 0, code=2)

    @pytest.mark.slow
    def test_norm_of_the_exponential(self, folder):
        """The range can be sampled for a choice, and for nothing else."""
        arguments = (
            *("release", "private.csv", "f.py:counts", "--population", "f.py:simulate", "--header"),
            *("--epsilon", 5, "--mechanism", "exponential", "--json", "--out", "c.json"),
        )
        found = {}
        for norm in ("sup", "range"):
            done = run(*arguments, "--norm", norm)
            found[norm] = json.loads(done.stdout)["certificate"]
            assert found[norm]["norm"] == norm
        # One person leaves a bin (-1) and enters another (+1): sup 1, range 2; the scale is alike.
        assert (found["sup"]["sensitivity"], found["range"]["sensitivity"]) == (1.0, 2.0)
        assert found["sup"]["mechanism"]["scale"] == found["range"]["mechanism"]["scale"]
        assert "exponential" in refused(*RELEASE, "--norm", "range", code=2)
        message = refused(*RELEASE, "--mechanism", "exponential", "--norm", "l2", code=2)
        assert "'range'" in message
        verified = run("verify", "c.json", "f.py:counts", "--population", "f.py:simulate")
        assert verified.exit_code == 0

    def test_verify_gives_the_function_what_it_was_sampled_with(self, folder):
        """A frame, without a word about it on the command line."""
        Path("g.py").write_text("def dear(rows): return rows['cost'].clip(0, 50).mean()\n")
        cells = "".join(f"{i % 50}.5\n" for i in range(4000))
        Path("p.csv").write_text(f"cost\n{cells}")
        Path("own.csv").write_text(f"cost\n{cells[:200]}")
        asked = ("own.csv", "g.py:dear", "--population", "p.csv", "--frame", "pandas")
        options = ("--epsilon", 1, "--gamma", 0.2, "--calibration", "marginal")
        done = run("release", *asked, *options, "--out", "h.json")
        assert done.exit_code == 0, done.stderr
        again = run("verify", "h.json", "g.py:dear", "--population", "p.csv")
        assert again.exit_code == 0, again.stderr

    def test_a_function_that_returns_a_function(self, folder):
        """Bernstein wraps a learner of functions; its options reach the mechanism; it verifies."""
        arguments = [a if a != "f.py:line" else "f.py:distribution" for a in RELEASE]
        done = run(
            *arguments,
            *("--mechanism", "bernstein", "--lattice", 4, "--order", 2, "--dims", 1),
            *("--out", "c.json", "--json"),
        )
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)
        assert len(found["value"]) == 5
        options = found["certificate"]["mechanism"]["parameters"]
        assert (options["lattice"], options["order"], options["dims"]) == (4, 2, 1)
        assert found["certificate"]["sampling"]["function"] == "distribution"
        verified = run("verify", "c.json", "f.py:distribution", "--population", "public.csv")
        assert verified.exit_code == 0, verified.stderr

    def test_lattice_is_for_bernstein(self, folder):
        """Parameters of another mechanism are refused."""
        assert "lattice" in refused(*RELEASE, "--lattice", 4, code=2)
