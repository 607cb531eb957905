"""Verbs with `workers`, in Python and as a command, answer on Ray as they do here."""

import pytest
from tests.lone import alone, needs_ray
from tests.verbs import VERBS

pytestmark = [pytest.mark.engines, *needs_ray]


def test_verbs_find_the_same_on_ray(tmp_path):
    """All of them on one cluster; and functions are called in processes of Ray.

    Ray sets a handler of SIGTERM, with which a command would abort: it ends as by Ctrl-C.
    """
    said = alone(
        """
        from pathlib import Path
        from tests.clusters import resume_command, stop_command
        from tests.verbs import VERBS, check_command, check_verb
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        home = Path(os.environ["HOME"])
        for verb in VERBS:
            check_verb(verb, "ray", home / verb)
            say(verb)
        (home / "command").mkdir()
        check_command("test-sensitivity", "ray", home / "command")
        say("test-sensitivity")
        os.environ["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
        (home / "stopped").mkdir()
        code, words, kept = stop_command(home / "stopped", "ray", signal.SIGTERM)
        assert code == 130, words[-2000:]
        say(f"{kept[0]} of 400 trials are kept in" in words, 10 < kept[0] < 400)
        say(resume_command(home / "stopped") > kept[0])  # each that is kept saves two calls
        """,
        tmp_path,
    )
    assert said == [*VERBS, "test-sensitivity", "True True", "True"]
