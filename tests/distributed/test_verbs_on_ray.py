"""Verbs with `workers`, in Python and as a command, answer on Ray as they do here."""

import pytest
from tests.lone import alone, needs_ray
from tests.verbs import VERBS

pytestmark = [pytest.mark.engines, *needs_ray]


def test_verbs_find_the_same_on_ray(tmp_path):
    """All of them on one cluster; and functions are called in processes of Ray."""
    said = alone(
        """
        from pathlib import Path
        from tests.verbs import VERBS, check_command, check_verb
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        home = Path(os.environ["HOME"])
        for verb in VERBS:
            check_verb(verb, "ray", home / verb)
            say(verb)
        (home / "command").mkdir()
        check_command("test-sensitivity", "ray", home / "command")
        say("test-sensitivity")
        """,
        tmp_path,
    )
    assert said == [*VERBS, "test-sensitivity"]
