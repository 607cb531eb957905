"""What a program wrote is read whole: what a reader of JSON drops tells the tables apart, too."""

import sys

import pytest

import hushed as hs
from hushed.auditing import Command
from hushed.auditing._programs import parse_line
from hushed.auditing._reading import read_object

PROGRAM = """
import json, random, sys

for line in sys.stdin:
    given = json.loads(line)
    noisy, exact = random.Random(given["seed"]).gauss(0, 5), given["rows"][0]
    sys.stdout.buffer.write(({answer}).encode("utf-8", "surrogateescape") + b"\\n")
    sys.stdout.flush()
"""
LEAKS = {
    "key twice": """'{"count": %d, "count": %r}' % (exact, noisy)""",
    "trailing zero": """"%.2f" % noisy + "0" * exact""",
    "last digit": """'{"count": %.15f%d}' % (noisy, exact)""",
    "blank": """'{"count":%s%r}' % (" " * exact, noisy)""",
    "blank at the end": """"%r%s" % (noisy, " " * exact)""",
    "return at the end": """"%r%s" % (noisy, chr(13) * exact)""",
    "how it is written": """("%.16e" if exact else "%.17g") % noisy""",
    "escape": """('["\\\\\\\\u0061", %r]' if exact else '["a", %r]') % noisy""",
    "beyond doubles": """"[1e%d, %r]" % (999 + exact, noisy)""",
    "minus before zero": """"[%s0, %r]" % ("-" * exact, noisy)""",
    "bytes that are no text": """"%r %s" % (noisy, chr(0xDC80 + exact))""",
}


@pytest.mark.slow_cases(
    "return at the end",
    "minus before zero",
    "how it is written",
    "bytes that are no text",
    "beyond doubles",
    "escape",
    "blank",
    "key twice",
    "trailing zero",
    "last digit",
)
@pytest.mark.parametrize("leak", LEAKS)
def test_what_a_reader_of_json_drops_is_caught(leak, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("{answer}", LEAKS[leak]))
    found = hs.audit(
        Command([sys.executable, str(program)]),
        [([0], [1])],
        claim=hs.Guarantee(epsilon=1.0),
        samples=600,
        workers=1,
    )
    assert found.verdict == "violated"


@pytest.mark.parametrize("line", ["1.5", "[1, 2.5]", '{"a": [0.1, null, true, "b"]}', "-3"])
def test_a_line_as_python_writes_it_is_its_value(line):
    assert type(parse_line(line)) in (float, list, dict, int)


@pytest.mark.slow
def test_noise_of_the_right_size_is_not_accused(tmp_path):
    """However it is written."""
    program = tmp_path / "program.py"
    answer = """'{"count":%.3f}' % (exact + noisy)"""
    program.write_text(PROGRAM.replace("{answer}", answer))
    found = hs.audit(
        Command([sys.executable, str(program)]),
        [([0], [1])],
        claim=hs.Guarantee(epsilon=1.5),
        samples=600,
        workers=1,
    )
    assert found.verdict == "not refuted"


def test_words_name_the_value_that_was_written():
    assert read_object(parse_line("[1,2]"))[0][0] == "list"
