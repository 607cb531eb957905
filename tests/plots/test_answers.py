"""A private answer as a figure: what was answered is drawn, and what was given beside it."""

from itertools import pairwise

import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import NotFound, ParameterError
from hushed.plots import answer_figure, budget_figure

CITY = ["Rome"] * 30 + ["Oslo"] * 10
TABLE = hs.table(pa.table({"city": CITY, "cost": [1.0, 3.0] * 20}))


def points(panel):
    return panel.get("data", panel["layer"][0].get("data"))["values"]


@pytest.mark.slow
def test_groups_are_drawn_with_their_bars_and_exact_numbers():
    """One panel for each number, a tick where it is known, and the remark beside the name."""
    query = TABLE.group_by("city", keys=["Rome", "Oslo"]).count().mean("cost", low=0, high=4)
    answer = query.histogram("cost", low=0, high=4, bins=2).release(epsilon=1.0)
    counts, means = answer_figure(answer, exact={"count": [30, 10]}).to_dict()["vconcat"]
    for panel, name, layers in ((counts, "count", 3), (means, "mean_cost", 2)):
        assert len(panel["layer"]) == layers
        drawn = points(panel)
        assert [each["group"] for each in drawn] == ["Rome", "Oslo"]
        for i, each in enumerate(drawn):
            assert (each["value"], each["low"], each["high"]) == (
                answer.values[name][i],
                answer.low[name][i],
                answer.high[name][i],
            )
    assert [each["exact"] for each in points(counts)] == [30, 10]
    assert "mean_cost [values clipped]" in str(means)


def test_a_delta_stands_beside_the_epsilon():
    """A figure is passed on without its record: an epsilon alone would be a stronger promise."""
    grouped = TABLE.group_by("city", select_partitions=True).count()
    for asked, said in ((grouped, "epsilon 1, delta 1e-06, one row"), (TABLE.count(), "epsilon 1")):
        answer = asked.release(epsilon=1.0, delta=1e-6 if asked is grouped else 0.0)
        told = answer_figure(answer).to_dict()["title"]["subtitle"]
        assert said in told
        assert ("delta" in told) == (answer.guarantee.delta > 0)


def test_an_answer_without_a_group_is_drawn_and_says_so():
    """Whoever has paid for it sees what came: a group of one row is shown once in 10^9 times."""
    one = hs.table(pa.table({"city": ["Rome"]})).group_by("city", select_partitions=True)
    drawn = answer_figure(one.count().release(epsilon=1.0, delta=1e-9)).to_dict()
    assert drawn["data"] == {"values": []}
    assert "no group is told" in drawn["title"]["subtitle"]


def test_what_cannot_be_drawn_is_refused():
    """Unknown outputs, the wrong number of groups, and answers without a number."""
    answer = TABLE.group_by("city", keys=["Rome", "Oslo"]).count().release(epsilon=1.0)
    for exact, words in (({"sum": 1}, "no output 'sum'"), ({"count": 1}, "each of the 2 groups")):
        with pytest.raises(ParameterError, match=words):
            answer_figure(answer, exact=exact)
    query = TABLE.group_by("city", keys=["Rome", "Oslo"]).histogram("cost", low=0, high=4, bins=2)
    with pytest.raises(ParameterError, match="no number for each group"):
        answer_figure(query.release(epsilon=1.0))


def test_bins_are_drawn_with_their_bars():
    """One for each bin, by its edges; of many the first, and it is said."""
    query = TABLE.histogram("cost", low=0, high=4, bins=2)
    answer = query.histogram("cost", low=0, high=4, bins=50, name="fine").release(epsilon=1.0)
    few, many = answer_figure(answer).to_dict()["vconcat"]
    assert [each["group"] for each in points(few)] == ["0 to 2", "2 to 4"]
    values, low = answer.values["histogram_cost"][0], answer.low["histogram_cost"][0]
    assert [(each["value"], each["low"]) for each in points(few)] == list(
        zip(values, low, strict=True)
    )
    assert len(points(many)) == 40
    assert "40 of 50 bins" in many["layer"][0]["encoding"]["x"]["title"]


def test_charges_are_named_beside_what_they_added(tmp_path):
    """Bars lie end to end, from what was used before to what is used after."""
    with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as book:
        book.open_budget("study", hs.Guarantee(epsilon=1.0))
        assert "vconcat" not in budget_figure(book, "study").to_dict()
        for i in range(17):
            book.charge("study", hs.Guarantee(epsilon=0.05), f"count {i}" if i else "")
        drawn = budget_figure(book, "study").to_dict()["vconcat"][1]
        with pytest.raises(NotFound):
            budget_figure(book, "nothing")
    bars = points(drawn)
    assert [each["charge"] for each in bars] == [f"{i + 1}: count {i}" for i in range(2, 17)]
    assert "the last 15 of 17 charges" in str(drawn["title"])
    assert all(a["after"] == b["before"] for a, b in pairwise(bars))
    assert [each["added"] for each in bars] == ["+5 %"] * 15
    assert bars[-1]["after"] == pytest.approx(85)
