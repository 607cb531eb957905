"""The same bits for any number of workers, and what `verify` says where bits cannot be the same."""

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info
from typer.testing import CliRunner

import hushed as hs
from hushed._functions._environment import compute_alone, differences, one_thread
from hushed.cli import app
from hushed.errors import ParameterError
from hushed.sensitivity._canary import first_table

UNIT = hs.populations.Uniform(low=0, high=1)
SOURCE = Path(hs.__file__).parents[1]
ROWS = 30_000
PAIRS = 60


def product(rows):
    return rows @ rows


def blas():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def sampled(workers, **settings):
    wanted = {"rows": ROWS, "pairs": PAIRS, "workers": workers} | settings
    return hs.sample_sensitivity(product, UNIT, **wanted)


needs_threads = pytest.mark.skipif(max(blas(), default=1) < 2, reason="BLAS has one thread")


class TestWorkers:
    """A product that BLAS splits among its threads, if it may."""

    @pytest.fixture(scope="class")
    @classmethod
    def one(cls):
        return sampled(1)

    @pytest.mark.parametrize("workers", [2, None])
    def test_the_movements_are_the_same(self, one, workers):
        assert np.array_equal(sampled(workers).draws, one.draws)

    def test_threads_of_joblib_give_the_same(self, one):
        with joblib.parallel_config("threading", n_jobs=2):
            assert np.array_equal(sampled(None).draws, one.draws)

    def test_verify_reproduces_across_workers(self, one):
        released = hs.release(product, np.full(ROWS, 0.5), hs.Laplace(one, epsilon=1))
        for workers in (1, 2, None):
            found = hs.verify(released.certificate.to_json(), product, workers=workers)
            assert (found.agreement, found.differing, found.largest) == ("bits", 0, 0.0)

    @pytest.mark.slow
    def test_releases_in_threads_agree_with_the_sampling(self, one):
        """Eight threads release at once; each canary has the bits of the main thread."""
        mechanism, told = hs.Laplace(one, epsilon=1), []

        def work():
            for _ in range(5):
                released = hs.release(product, np.full(ROWS, 0.5), mechanism)
                told.append(released.certificate.confirmed)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert told == ["bits"] * 40

    @pytest.mark.slow
    @needs_threads
    def test_the_function_sees_one_thread_everywhere(self, tmp_path):
        """Probe, trials, workers, canary and release; afterwards all threads are back."""
        import scipy.linalg  # noqa: F401  (a second pool)

        before = blas()

        def noting(rows):
            from threadpoolctl import threadpool_info

            seen = [each["num_threads"] for each in threadpool_info()]
            with (tmp_path / f"{os.getpid()}").open("a") as file:
                file.write(f"{max(seen)}\n")
            time.sleep(0.01)
            return rows.mean()

        s = hs.sample_sensitivity(noting, UNIT, rows=10, pairs=40, workers=2)
        hs.release(noting, np.full(10, 0.5), hs.Laplace(s, epsilon=1))
        told = {line for path in tmp_path.iterdir() for line in path.read_text().split()}
        assert told == {"1"}
        assert len(list(tmp_path.iterdir())) > 1
        assert blas() == before


@needs_threads
class TestLimits:
    """The limit is global to the process: whoever leaves last puts it back, and nobody earlier."""

    def test_blocks_nest(self):
        before = blas()
        with one_thread(), one_thread():
            assert set(blas()) == {1}
        assert blas() == before
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert blas() == before

    def test_any_thread_may_hold_and_put_back(self):
        """Not only the one that was first, nor the one that set it last."""
        before, told = blas(), []
        with one_thread():
            pass

        def work():
            with one_thread():
                told.append(set(blas()))
            told.append(blas())

        for _ in range(2):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert told == [{1}, before] * 2
        assert blas() == before

    @pytest.mark.slow
    def test_threads_that_overlap_leave_nothing_behind(self):
        """Eight threads go in and out for a while: within, always one; afterwards, as before."""
        before, wrong, stop = blas(), [], time.monotonic() + 2

        def work(pause):
            while time.monotonic() < stop:
                with one_thread():
                    time.sleep(pause)
                    if set(blas()) != {1}:
                        wrong.append(blas())
                time.sleep(pause / 2)

        threads = [threading.Thread(target=work, args=(0.001 * (1 + i),)) for i in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert wrong == []
        assert blas() == before

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_a_fork_amid_another_thread_is_free(self):
        """The child has all threads, and can hold them; the parent keeps its limit."""
        inside, leave = threading.Event(), threading.Event()

        def work():
            with one_thread():
                inside.set()
                leave.wait(20)

        before = blas()
        thread = threading.Thread(target=work)
        thread.start()
        inside.wait(20)
        child = os.fork()
        if not child:
            good = blas() == before
            with one_thread():
                good = good and set(blas()) == {1}
            os._exit(0 if good and blas() == before else 1)
        _, status = os.waitpid(child, 0)
        held = set(blas())
        leave.set()
        thread.join()
        assert os.waitstatus_to_exitcode(status) == 0
        assert held == {1}
        assert blas() == before

    @pytest.mark.slow
    def test_a_library_loaded_by_the_call_is_held_too(self):
        """Its pool is not there when the limit is set: the call is made once more."""
        code = """
            from threadpoolctl import threadpool_info
            import numpy as np
            from hushed._functions._environment import compute_alone
            calls = []
            def call():
                import scipy.linalg
                calls.append(1)
                return [each["num_threads"] for each in threadpool_info()]
            print(compute_alone(call), len(calls), compute_alone(call), len(calls))
        """
        told = run_python(code)
        assert told.strip() == "[1, 1] 2 [1, 1] 3"

    def test_a_call_that_loads_nothing_is_made_once(self):
        calls = []
        assert compute_alone(lambda: calls.append(1)) is None
        assert calls == [1]


def run_python(code, **env):
    # A nanny of Dask, where one ran in this process, leaves limits of threads behind.
    ours = {name: os.environ[name] for name in os.environ if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=ours | {"PYTHONPATH": str(SOURCE)} | env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


VERIFY = """
    import json
    from dataclasses import asdict
    import hushed as hs
    def product(rows):
        return rows @ rows
    found = hs.verify(open({path!r}).read(), product, workers=1)
    print(json.dumps(asdict(found) | {{"said": found.explain()}}))
"""


def kernel():
    found = [each for each in threadpool_info() if each["internal_api"] == "openblas"]
    return found[0]["architecture"] if found else ""


class TestOtherProcessors:
    """OPENBLAS_CORETYPE makes this computer round like another one."""

    @pytest.fixture(scope="class")
    @classmethod
    def path(cls, tmp_path_factory):
        s = sampled(1)
        released = hs.release(product, np.full(ROWS, 0.5), hs.Laplace(s, epsilon=1))
        path = tmp_path_factory.mktemp("certificates") / "certificate.json"
        path.write_text(released.certificate.to_json())
        return path

    @pytest.mark.slow
    @pytest.mark.slow_cases("Haswell")
    @pytest.mark.skipif(kernel() in ("", "Sandybridge"), reason="needs an OpenBLAS of many kernels")
    @pytest.mark.parametrize("core", ["Haswell", "Sandybridge"])
    def test_rounding_is_told_from_a_difference(self, path, core):
        if core == kernel():
            pytest.skip("that is this processor")
        found = json.loads(run_python(VERIFY.format(path=str(path)), OPENBLAS_CORETYPE=core))
        assert found["agreement"] == "rounding"
        assert not found["reproduced"]
        assert 0 < found["differing"] <= found["judged"] == PAIRS
        assert 0 < found["largest"] <= found["limit"] < 1e-8
        assert any(core in each and kernel() in each for each in found["environments"])
        assert core in found["said"]
        assert f"of the {PAIRS} recorded movements differ" in found["said"]

    @pytest.mark.skipif(kernel() in ("", "Haswell"), reason="needs an OpenBLAS of many kernels")
    def test_a_release_elsewhere_says_so(self, tmp_path):
        """Sampled here, released on a like of another computer: within rounding, and told."""
        code = """
            import cloudpickle, numpy as np, hushed as hs
            def product(rows):
                return rows @ rows
            {act}
        """
        path = str(tmp_path / "s.pkl")
        run_python(
            code.format(
                act=f"s = hs.sample_sensitivity(product, hs.populations.Uniform(low=0, high=1), "
                f"rows={ROWS}, pairs=20, seed=3, workers=1); "
                f"cloudpickle.dump((product, s), open({path!r}, 'wb'))"
            )
        )
        act = (
            f"f, s = cloudpickle.load(open({path!r}, 'rb')); c = hs.release("
            f"f, np.full({ROWS}, 0.5), hs.Laplace(s, epsilon=1)).certificate; "
            "print(c.confirmed, c.explain())"
        )
        told = run_python(code.format(act=act), OPENBLAS_CORETYPE="Haswell")
        assert told.startswith(("bits", "rounding"))
        assert told.startswith("bits") or "Haswell now" in told

    def test_the_command_accepts_rounding_only_if_told(self, path, tmp_path, monkeypatch):
        """Exit code 1 for rounding, 0 with --accept-rounding, and 1 for a real difference."""
        monkeypatch.chdir(tmp_path)
        record = json.loads(path.read_text())
        nudged = record["sampling"]["movements"]
        nudged[5] = float(np.nextafter(nudged[5], np.inf))
        Path("near.json").write_text(json.dumps(record))
        nudged[6] += 1e-6
        Path("far.json").write_text(json.dumps(record))
        Path("f.py").write_text("def product(rows):\n    return rows @ rows\n")

        def code(*options):
            return CliRunner().invoke(app, ["verify", *options, "f.py:product"]).exit_code

        assert code(str(path)) == 0
        assert code("near.json") == 1
        assert code("near.json", "--accept-rounding") == 0
        assert code("far.json", "--accept-rounding") == 1


class TestVerdicts:
    """`rounding` is for last digits: whatever else differs is different."""

    @pytest.fixture(scope="class")
    @classmethod
    def certificate(cls):
        s = hs.sample_sensitivity(np.mean, UNIT, rows=50, pairs=300, workers=1)
        return hs.release(np.mean, np.full(50, 0.5), hs.Laplace(s, epsilon=1)).certificate

    def test_bits_rounding_and_different(self, certificate):
        sampling = certificate.sampling
        for step, agreement in ((0.0, "bits"), (1e-16, "rounding"), (1e-9, "different")):
            *rest, kept = sampling.movements  # the kept one is the sensitivity: it has to agree
            moved = (*(each + step for each in rest), kept)
            known = replace(certificate, sampling=replace(sampling, movements=moved))
            found = hs.verify(known, np.mean, workers=1)
            assert found.agreement == agreement
            assert found.reproduced == (agreement == "bits")
            assert found.judged == 201

    def test_a_scale_that_does_not_follow_is_refused(self, certificate):
        mechanism = replace(certificate.mechanism, scale=certificate.mechanism.scale * 0.999)
        with pytest.raises(ParameterError, match=r"mechanism\.scale"):
            replace(certificate, mechanism=mechanism)

    def test_the_limit_is_that_of_the_answers(self, certificate):
        """64 units of the largest answer: here of means, all below 1."""
        found = hs.verify(certificate, np.mean, workers=1)
        assert 0.5 < found.limit / (64 * 2**-52) < 1

    def test_environments_are_compared_by_what_both_know(self):
        then = {"numpy": "2.0", "cpu": "AVX2 FMA3", "blas of scipy": "x"}
        now = {"numpy": "2.1", "cpu": "AVX2 AVX512F"}
        assert differences(then, now) == (
            "processor features: FMA3 only then, AVX512F only now",
            "numpy 2.0 then, 2.1 now",
        )
        assert differences(then, then) == ()


STATES = {
    # Set after the import, seen on every table.
    "number": ("K = 1.0\ndef helped(x): return K * x", "helped.K = 100.0"),
    # Silent on the first table, so that only a look at the helper tells.
    "rare": ("K = 2.0\ndef helped(x): return 100 * x if x > K else x", "helped.K = 0.55"),
    "class": ("class C:\n    k = 1.0\ndef helped(x): return C.k * x", "helped.C.k = 100.0"),
    # No digest, no pickle.
    "context": (
        "import contextvars\nK = contextvars.ContextVar('K', default=1.0)\n"
        "def helped(x): return K.get() * x",
        "helped.K.set(100.0)",
    ),
    # What the population draws.
    "population": (
        "K = 1.0\ndef helped(x): return x\ndef drawn(rng, count): return K * rng.random(count)",
        "helped.K = 100.0",
    ),
    # Silent in the first table, so that only a look at the population tells.
    "rare rows": (
        "K = 2.0\ndef helped(x): return x\ndef drawn(rng, count):\n"
        "    rows = rng.random(count)\n    return 100 * rows if rows.max() > K else rows",
        "helped.K = 0.999",
    ),
    "environment": (
        "import os\ndef helped(x): return float(os.environ.get('HELPED', 1)) * x",
        "os.environ['HELPED'] = '100'",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=pytest.mark.soak) if each in ("context", "class") else each
        for each in STATES
    ],
)
def test_what_was_set_after_the_import_holds_in_workers(name, tmp_path):
    """Workers import a module anew: where it is another one there, trials are run here."""
    module, change = STATES[name]
    (tmp_path / "helped.py").write_text(module)
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, time, joblib
            joblib.Parallel(n_jobs=2)(joblib.delayed(int)() for _ in range(2))  # from before
            import helped, numpy as np, hushed as hs
            CHANGE
            drawn = getattr(helped, "drawn", None)
            source = hs.populations.Simulator(drawn) if drawn else hs.populations.Uniform(0, 1)
            def f(rows):
                time.sleep(0.001)
                return helped.helped(float(np.sort(rows).mean()))
            found = [
                hs.sample_sensitivity(f, source, rows=10, pairs=600, workers=n) for n in (1, 2)
            ]
            assert np.array_equal(*(each.draws for each in found)), [each.value for each in found]
            """
        ).replace("CHANGE", change)
    )
    paths = os.pathsep.join([str(SOURCE), str(tmp_path)])
    ended = subprocess.run(
        [sys.executable, str(script)],
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not ended.returncode, ended.stderr


@pytest.mark.slow
def test_what_a_worker_cannot_load_is_run_here(tmp_path):
    """A cache of a script can be sent, and is not found where it arrives."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import functools, time, numpy as np, hushed as hs
            @functools.lru_cache
            def cached(k): return 2 * k
            def f(rows):
                time.sleep(0.001)
                return cached(3) * float(np.sort(rows).mean())
            source = hs.populations.Uniform(0, 1)
            found = [
                hs.sample_sensitivity(f, source, rows=10, pairs=600, workers=n) for n in (1, 2)
            ]
            assert np.array_equal(*(each.draws for each in found))
            """
        )
    )
    ended = subprocess.run(
        [sys.executable, str(script)],
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not ended.returncode, ended.stderr


@pytest.mark.slow
def test_workers_do_work_for_functions_that_did_not_change(tmp_path):
    """Functions of a script, with its classes, are found to be the same where they arrive."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, sys, time, numpy as np, hushed as hs
            from collections import namedtuple
            from dataclasses import dataclass
            Pair = namedtuple("Pair", "a b")
            @dataclass(frozen=True)
            class Settings:
                share: float = 0.5
            class Slots:
                __slots__ = ("share",)
                def __init__(self, share): self.share = share
                def __eq__(self, other): return self.share == other.share
            pair, settings, folder = Pair(1, 2), Settings(), sys.argv[1]
            def f(rows):
                open(os.path.join(folder, str(os.getpid())), "w").close()
                time.sleep(0.001)
                return pair.b * settings.share * float(np.sort(rows).mean())
            source = hs.populations.Uniform(0, 1)
            hs.sample_sensitivity(f, source, rows=10, pairs=600, workers=2)
            for kind in (Settings, Slots, lambda share: Pair(share, share)):
                folder = os.path.join(sys.argv[1], "rows")
                os.makedirs(folder, exist_ok=True)
                read = lambda row: row.a if isinstance(row, Pair) else row.share
                def g(rows):
                    open(os.path.join(folder, str(os.getpid())), "w").close()
                    time.sleep(0.001)
                    return float(np.mean([read(row) for row in rows]))
                draw = lambda rng, n: [kind(float(x)) for x in rng.random(n)]
                source = hs.populations.Simulator(draw)
                hs.sample_sensitivity(g, source, rows=10, pairs=200, workers=2)
                assert len(os.listdir(folder)) > 1, kind
                for name in os.listdir(folder):
                    os.remove(os.path.join(folder, name))
            """
        )
    )
    seen = tmp_path / "seen"
    seen.mkdir()
    ended = subprocess.run(
        [sys.executable, str(script), str(seen)],
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not ended.returncode, ended.stderr
    assert len(list(seen.iterdir())) > 1


class Names:
    """Rows of texts, which each process hashes by a seed of its own."""

    def draw(self, rng, count):
        return [f"name {each}" for each in rng.integers(10**6, size=count)]

    def describe(self):
        return {"kind": "names"}


@pytest.mark.slow
@pytest.mark.skipif("PYTHONHASHSEED" in os.environ, reason="all processes hash alike")
def test_sets_of_texts_that_are_in_another_order_in_workers_are_seen():
    """Also where the first table says nothing of it."""
    settings = {"rows": 5, "pairs": 40, "seed": 3}
    plain = hs.sample_sensitivity(lambda rows: float(len(rows[0])), Names(), workers=1, **settings)
    first = first_table(plain.sampling.design, seed=3, private=False)[0]

    def pick(rows):
        time.sleep(0.01)
        return 0.0 if rows[0] == first else float(next(iter(set(rows))).split()[1])

    found = [hs.sample_sensitivity(pick, Names(), workers=each, **settings) for each in (1, 2)]
    assert np.array_equal(found[0].draws, found[1].draws)
