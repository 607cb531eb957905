"""Verbs with `workers`, in Python and as a command, answer on Spark as they do here."""

import pytest
from tests.verbs import VERBS, check_command, check_verb

# pyspark and pandas are not of one age, and their warnings are theirs
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_finds_the_same_on_spark(verb, spark, tmp_path):
    """In the session of this process; and the function is called in processes of Spark."""
    check_verb(verb, "spark" if verb == "zoo" else spark, tmp_path)


def test_a_command_says_the_same_on_spark(spark, tmp_path):
    """All but the seconds; and the function is called in processes of Spark."""
    check_command("test-sensitivity", "spark", tmp_path)
