"""Ray gives the bits of one process, survives a killed worker, or says why not.

Ray listens on the addresses of the machine: each test runs in a network that has loopback alone.
"""

import re
import shutil
import tempfile

import pytest
from tests.lone import alone, needs_ray

pytestmark = [pytest.mark.engines, *needs_ray]


def test_ray_gives_the_bits_of_one_process(tmp_path):
    """Value and all draws, on a cluster that the word starts and ends, and nothing is reported."""
    said = alone(
        """
        def spread(rows):
            return rows.max() - rows.mean()
        asked = dict(rows=20, calibration="marginal", pairs=300)
        here = hs.sample_sensitivity(spread, UNIT, workers=1, **asked)
        there = hs.sample_sensitivity(spread, UNIT, workers="ray", **asked)
        say(np.array_equal(there.draws, here.draws), there.value == here.value)
        say(ray.is_initialized(), os.environ["RAY_USAGE_STATS_ENABLED"])
        """,
        tmp_path,
    )
    assert said == ["True True", "False 0"]


def test_errors_and_deaths_on_a_cluster_of_the_caller(tmp_path):
    """The function's error is itself; one death is made up for; a deadly function is given up.

    Ctrl-C takes back what runs: the cluster, which stays, has its processors again.
    """
    said = alone(
        """
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        from pathlib import Path
        from tests.clusters import LATE, failed_elsewhere, make_picky
        home = Path(os.environ["HOME"])
        found, picky = [], make_picky(home)
        for workers in (1, "ray"):
            try:
                hs.sample_sensitivity(picky, UNIT, workers=workers, **LATE)
            except BadFunction as error:
                found.append((str(error), repr(error.__cause__)))
        say(len(found), found[0] == found[1], failed_elsewhere(home))

        import tempfile
        mark = os.path.join(tempfile.mkdtemp(dir=os.environ['HOME']), "struck")
        def dying_once(generators):
            if os.getpid() != PARENT and not os.path.exists(mark):
                open(mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.01)
            return draws(generators)
        got = run_trials(dying_once, 60, seed=3, workers="ray")
        say(os.path.exists(mark), np.array_equal(got, run_trials(draws, 60, seed=3, workers=1)))

        def deadly(generators):
            if os.getpid() != PARENT:
                os._exit(1)
            return draws(generators)
        try:
            run_trials(deadly, 100, seed=3, workers="ray")
        except WorkerLost as error:
            say(error)
        got = run_trials(draws, 20, seed=3, workers="ray")
        say(np.array_equal(got, run_trials(draws, 20, seed=3, workers=1)), ray.is_initialized())

        begun = str(home / "begun")
        def stuck(generators):
            if os.getpid() != PARENT:
                open(begun, "w").close()
                time.sleep(100)
            return draws(generators)
        def strike():
            while not os.path.exists(begun):
                time.sleep(0.05)
            os.kill(PARENT, signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=strike, daemon=True).start()
        try:
            run_trials(stuck, 60, seed=3, workers="ray")
        except KeyboardInterrupt:
            end = time.monotonic() + 120
            while ray.available_resources().get("CPU") != 2 and time.monotonic() < end:
                time.sleep(0.1)
            say(ray.available_resources().get("CPU"))
        """,
        tmp_path,
        RAY_USAGE_STATS_ENABLED="0",
    )
    assert said[0] == "2 True True"
    assert said[1] == "True True"
    # Each worker holds a span; any of them may be the first that died too often.
    assert re.search(r"died again and again at trials \d+ to \d+ \(WorkerCrashedError\)", said[2])
    assert re.search("[1-5] of 100 trials were done, and are lost", said[2])
    assert said[3:] == ["True True", "2.0"]


def test_a_client_of_ray_gives_the_bits_of_one_process(tmp_path):
    """Value and all draws, at ray://; the port is one of a network that nothing else is in.

    Ray forks a process for each client, which runs a shell; the first one ends there, as some do.
    """
    short = tempfile.mkdtemp(prefix="ray")  # sockets have short paths
    said = alone(
        """
        import shutil, subprocess
        tools, died = (os.path.join(os.environ["HOME"], each) for each in ("tools", "died"))
        os.mkdir(tools)
        with open(f"{tools}/bash", "w") as file:
            file.write(f"#!/bin/sh\\ncase $* in *mode=specific-server*) "
                f"[ -e {died} ] || {{ touch {died}; exit 1; }};; esac\\n"
                f'exec {shutil.which("bash")} "$@"\\n')
        os.chmod(f"{tools}/bash", 0o755)
        os.environ["PATH"] = f"{tools}:{os.environ['PATH']}"
        start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--num-cpus=2"]
        start += ["--include-dashboard=false", "--ray-client-server-port=10001"]
        def spread(rows):
            return rows.max() - rows.mean()
        asked = dict(rows=20, calibration="marginal", pairs=300)
        try:
            subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
            here = hs.sample_sensitivity(spread, UNIT, workers=1, **asked)
            there = hs.sample_sensitivity(spread, UNIT, workers="ray://127.0.0.1:10001", **asked)
            say(np.array_equal(there.draws, here.draws), there.value == here.value)
            say(ray.is_initialized(), os.path.exists(died))
        finally:
            for process in in_this_network():
                os.kill(process, signal.SIGKILL)
        """,
        tmp_path,
        RAY_USAGE_STATS_ENABLED="0",
        RAY_TMPDIR=short,  # else the next test would look for this cluster
    )
    shutil.rmtree(short, ignore_errors=True)
    assert said == ["True True", "False True"]


def test_a_lost_head_ends_the_run_before_ray_ends_the_program(tmp_path):
    """Ray would wait for a minute, and exit; the error is ours, and the program goes on."""
    said = alone(
        """
        try:
            def slow(generators):
                return np.array([time.sleep(0.05) or g.random(2) for g in generators])
            done, killed = [0], []
            def strike(count):
                done[0] += count
                if done[0] >= 20 and not killed:
                    killed.append(True)
                    for process, name in in_this_network().items():
                        if name in ("gcs_server", "raylet"):
                            os.kill(process, signal.SIGKILL)
            try:
                run_trials(slow, 400, seed=3, workers="ray", report=strike)
            except hs.errors.EngineUnavailable as error:
                say(error)
            say(killed)
        finally:
            for process in in_this_network():
                os.kill(process, signal.SIGKILL)
        """,
        tmp_path,
        RAY_USAGE_STATS_ENABLED="0",
    )
    assert "lost the Ray cluster" in said[0]
    assert said[1] == "[True]"


def test_a_command_on_ray_that_is_stopped_says_what_is_kept(tmp_path):
    """Ctrl-C comes to all processes that the command has started, the cluster among them.

    A command on a cluster of somebody else is ended by SIGTERM in `test_verbs_on_ray.py`.
    """
    said = alone(
        """
        from pathlib import Path
        from tests.clusters import resume_command, stop_command
        home = Path(os.environ["HOME"])
        code, words, kept = stop_command(home, "ray", signal.SIGINT)
        assert code == 130, words[-2000:]
        say(f"{kept[0]} of 400 trials are kept in" in words, 10 < kept[0] < 400)
        say(resume_command(home) > kept[0])  # each trial that is kept saves two calls
        """,
        tmp_path,
    )
    assert said == ["True True", "True"]
