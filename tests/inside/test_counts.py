"""Words of a count: one of a thing is no several."""

import hushed as hs
from hushed._ground.printing import name_count
from hushed.tables._left_out import LeftOut


def test_one_is_singular_also_as_text():
    assert [name_count(each, "rank") for each in (0, 1, "1", "1.5", 2)] == [
        "0 ranks",
        "1 rank",
        "1 rank",
        "1.5 ranks",
        "2 ranks",
    ]
    assert str(LeftOut(rows=1, users=1)) == "1 row of 1 user"


def test_the_certificate_of_one_block_says_so():
    """Its stored argument keeps the words that older certificates have."""
    blocks = hs.Blocks([0.0, 1.0], epsilon=50.0, blocks=1)
    told = hs.certify(hs.release(len, [1.0, 2.0], blocks)).explain()
    assert "asked about 1 block of the rows" in told
    assert "1 blocks" not in told
