"""What an answer and a price say, from noisy numbers alone."""

import math
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed import noise
from hushed.errors import ParameterError
from hushed.tables._format import format_table, list_lines
from hushed.tables._measurements import UnitContribution, measurements
from hushed.tables._outputs import evaluate, rank_error
from hushed.tables._plan import plan_noise
from hushed.tables._requests import Aggregate


@pytest.fixture
def table():
    """Two hundred rows; only the first forty have a height."""
    return hs.table(
        pa.table(
            {
                "cost": [float(i * 37 % 200) for i in range(200)],
                "height": [float(i) if i < 40 else None for i in range(200)],
                "city": ["Rome", "Oslo"] * 100,
            }
        )
    )


def planned_quantiles(probabilities, candidates=101, epsilon=1.0):
    """An aggregate of quantiles between 0 and the last candidate, and its parts."""
    aggregate = Aggregate(
        kind="quantiles", name="q", column="x", high=candidates - 1.0, bins=candidates,
        probabilities=tuple(probabilities),
    )  # fmt: skip
    contribution = UnitContribution(rows=1, groups=1)
    plan = plan_noise(
        [aggregate], measurements(aggregate, contribution, {"x": "float"}),
        contribution=contribution, unit="row",
        select_partitions=False, epsilon=epsilon, delta=0.0, noise_name="laplace",
    )  # fmt: skip
    return aggregate, plan.parts


class TestQuantiles:
    @pytest.mark.slow
    def test_no_lower_quantile_lies_above_a_higher_one(self, table):
        """At an epsilon of nearly nothing the choices are noise, and still in order."""
        asked = [0.75, 0.1, 0.9, 0.5]
        query = table.group_by("city", keys=["Rome", "Oslo", "Bonn"])
        query = query.quantiles("cost", asked, low=0, high=200)
        for _ in range(5):
            for found in query.release(epsilon=1e-3).values["quantiles_cost"]:
                by_size = [value for _, value in sorted(zip(asked, found, strict=True))]
                assert by_size == sorted(found)
                assert len(set(found)) > 1

    def test_order_keeps_the_errors(self):
        """Every choice of three within its error stays within it when sorted; all small cases."""
        asked, parts = planned_quantiles([0.7, 0.2, 0.5], candidates=5)
        for near in ([1, 1, 1, 1, 6], [0, 7, 1, 2, 0], [3, 0, 0, 7, 0], [9, 0, 1, 0, 0]):
            upto = np.cumsum(near)
            wanted = [p * upto[-1] for p in asked.probabilities]

            def missed(candidate, want, near=near, upto=upto):
                below = upto[candidate] - near[candidate]
                return max(0.0, below - want, want - upto[candidate])

            for chosen in product(range(5), repeat=3):
                most = max(missed(c, want) for c, want in zip(chosen, wanted, strict=True))
                values, _, _ = evaluate([asked], parts, [[c] for c in chosen], 0.05)
                assert sorted(values["q"][0]) == sorted(map(float, chosen))
                for value, want in zip(values["q"][0], wanted, strict=True):
                    assert missed(int(value), want) <= most + 1e-12

    def test_the_rank_error_holds_for_all_of_them_together(self):
        """The worst table: one good candidate, a hundred that miss by just the error."""
        beta, epsilon = 0.05, 0.3
        asked, parts = planned_quantiles([0.5, 0.5, 0.5], epsilon=epsilon)

        def missing(error):
            bad = 100 * math.exp(-epsilon / 3 * error)  # a rank costs 1, a third of epsilon each
            return 1 - (1 - bad / (1 + bad)) ** 3

        error = rank_error(asked, parts, beta)
        assert missing(error) <= beta < missing(0.95 * error)

    @pytest.mark.parametrize("given", [0.5, "0.5", None, ["a"], [None], [True]])
    def test_probabilities_are_a_list_of_numbers(self, table, given):
        """A bare number is refused with the list to write instead."""
        with pytest.raises(ParameterError, match="probabilit"):
            table.quantiles("cost", given, low=0, high=1)

    @pytest.mark.parametrize("given", [1, 0, 10_002, 2.5])
    def test_candidates_are_counted_as_documented(self, table, given):
        """From 2 to 10001."""
        with pytest.raises(ParameterError, match="candidates"):
            table.quantiles("cost", [0.5], low=0, high=1, candidates=given)
        assert table.quantiles("cost", np.array([0.5]), low=0, high=1, candidates=2)


class TestRemarks:
    def test_the_rows_with_a_value_are_told(self, table):
        """The divisor of a mean, as it was drawn, as a column and in words."""
        answer = table.mean("cost", low=0, high=200).release(epsilon=200.0)
        assert answer.rows()[0]["mean_cost_rows"] == answer.present["mean_cost"][0]
        assert abs(answer.present["mean_cost"][0] - 200) < 2
        assert answer.warnings == (
            f"mean_cost: about {answer.present['mean_cost'][0]} rows with a value, within 0.",
        )
        assert answer.warnings[0] in str(answer)

    @pytest.mark.parametrize("kind", ["laplace", "gaussian"])
    def test_few_values_among_many_rows_are_warned_of(self, table, kind):
        """Forty of two hundred; not where all have one, and not without the number of rows."""
        epsilon, delta = (300.0, 0.0) if kind == "laplace" else (10.0, 1e-6)
        query = table.mean("height", low=0, high=10).variance("cost", low=0, high=200)
        told = query.count().release(epsilon=epsilon, delta=delta, noise=kind).warnings
        found = [each for each in told if "fewer than half" in each]
        assert [each.partition(":")[0] for each in found] == ["mean_height"]
        assert "decimal points" in found[0]
        told = query.release(epsilon=epsilon, delta=delta, noise=kind).warnings
        assert not any("fewer than half" in each for each in told)

    def test_no_values_are_warned_of_without_a_count(self, table):
        """Groups in which the number of rows with a value is lost in the noise are counted."""
        query = table.filter("is_null(height)").group_by("city", keys=["Rome", "Oslo"])
        told = query.mean("height", low=0, high=10).release(epsilon=50.0).warnings
        assert [each.partition(" the")[0] for each in told] == ["mean_height: in 2 of 2 groups"]

    def test_warnings_are_made_of_noisy_numbers_only(self, table, monkeypatch):
        """With noise that adds 190 to every count, the remark follows the noise, not the rows."""
        query = table.filter("is_null(height)").count().mean("height", low=0, high=10)
        monkeypatch.setattr(
            noise, "discrete_laplace", lambda scale, size: np.full(size, 190, np.int64)
        )
        told = query.release(epsilon=50.0).warnings
        assert told[0].startswith("mean_height: about 190 rows with a value")
        assert len(told) == 1


class TestWords:
    def test_one_and_many(self, table):
        """One row, one aggregate; an error is said once."""
        query = table.count()
        assert "one row. Each" in query.release(epsilon=1.0).explain()
        said = query.quote(epsilon=1.0).explain().splitlines()
        assert said[1] == "count: within 3; 100 % of epsilon"
        assert said[2].endswith("the only aggregate of the query uses all of epsilon")
        assert "split over 2 aggregates" in query.count(name="b").quote(epsilon=1.0).explain()

    def test_an_answer_as_text_has_its_error_bars(self, table):
        """One line a group; a histogram says how far each bin may be off."""
        query = table.group_by("city", keys=["Rome", "Oslo"]).count()
        answer = query.histogram("cost", low=0, high=200, bins=2).release(epsilon=2.0)
        shown = [line.split(maxsplit=4) for line in str(answer).splitlines()]
        assert shown[0] == ["city", "count", "histogram_cost"]
        for line, row in zip(shown[1:3], answer.rows(), strict=True):
            ends = f"{row['count']} [{row['count_low']:g}, {row['count_high']:g}]"
            assert " ".join(line[:4]) == f"{row['city']} {ends}"
            one, two = row["histogram_cost"]
            assert line[4] == f"{one} {two} (within 3)"
        assert shown[3:5] == [["edges", "of", "the", "bins", "of histogram_cost: 0 100 200"], []]
        assert str(answer).endswith(answer.explain())

    @pytest.mark.slow
    def test_a_quantile_says_its_ranks(self, table):
        """In words, without a promise of error bars that it does not have."""
        answer = table.quantiles("cost", [0.5], low=0, high=200).release(epsilon=1.0)
        ranks = math.log(2000 / 0.05)
        assert answer.rank_error["quantiles_cost"] == pytest.approx(ranks)
        assert "quantiles_cost: at most 10.6 ranks" in str(answer)
        assert "the nearest of 2000 candidates, 0.694 % apart" in str(answer)
        assert answer.candidates["quantiles_cost"].spacing == "geometric"
        assert "error bar" not in str(answer)
        assert str(answer).splitlines()[0] == "quantiles_cost"

    def test_several_quantiles_say_which_number_is_which(self, table):
        """Two bare numbers were read as an error bar, or in another order."""
        answer = table.quantiles("cost", [0.9, 0.5], low=0, high=200).release(epsilon=1.0)
        assert str(answer).splitlines()[2] == "quantiles of quantiles_cost: 0.9 0.5"
        assert "<td>0.9 0.5</td>" in answer._repr_html_()

    def test_ranks_are_told_of_the_rows_that_are_guessed(self, table):
        """An error of 5000 ranks is a small one of millions of rows, and all of 5000."""
        quote = table.quantiles("cost", [0.5], low=0, high=200)
        said = quote.quote(epsilon=1.0, rows=3000).explain()
        assert re.search(r"ranks of about 3,?000 rows", said)

    def test_groups_are_counted_and_large_numbers_written_out(self, table):
        """A footer that speaks of groups, not of rows, and sums that can go into a report."""
        query = table.group_by("city", keys=["Rome", "Oslo"]).sum("cost", low=0, high=1e9)
        answer = query.derive("big", "cost * 1000000").sum("big", low=0, high=2e8)
        answer = answer.release(epsilon=1.0)
        assert "one row; 2 groups. Each" in answer.explain()
        assert "e+" not in str(answer)
        assert "e+" not in query.quote(epsilon=1.0).explain()
        wide = {"values": {"x": (1.5e6,)}, "low": {"x": (0.25,)}, "high": {"x": (1e300,)}}
        found = replace(answer, keys={}, asked=None, **wide)
        assert format_table(list_lines(found)) == "x [noise alone]\n1500000 [0.25, 1e+300]"

    def test_a_large_epsilon_is_called_so(self, table):
        """From 10 on, before and after, for numbers without noise look best of all."""
        said = "keeps hardly anything private"
        assert said in table.count().quote(epsilon=10.0).explain()
        assert said in str(table.count().release(epsilon=1e9))
        assert said not in table.count().quote(epsilon=9.0).explain()
        assert said not in str(table.count().release(epsilon=9.0))

    def test_a_table_shows_no_query_language(self, table):
        """What is asked can be read; the text sent to the database is left out."""
        assert "CAST" not in repr(table)
        assert "cost (float)" in repr(table)

    def test_a_mean_says_when_its_error_is_known(self, table):
        """With a number of rows its own error, without one what to say."""
        query = table.mean("cost", low=0, high=200)
        assert "such as rows=100" in query.quote(epsilon=1.0).explain()
        said = query.quote(epsilon=1.0, rows=5000)
        assert "if about 5000 rows have a value" in said.explain()
        groups = table.group_by("city", keys=["Rome"]).mean("cost", low=0, high=200)
        told = groups.quote(epsilon=1.0, rows=5000).explain()
        assert "if about 5000 rows of each group have a value" in told
        assert "rows=" not in said.explain()
        for rows in (0, -5, 2.5):
            with pytest.raises(ParameterError, match="rows"):
                query.quote(epsilon=1.0, rows=rows)

    def test_a_price_may_start_from_errors(self, table):
        """A count of Laplace noise: the error ln(20) / epsilon, up to a whole number of rows."""
        found = table.count().quote(error=10)
        assert found.guarantee.epsilon == pytest.approx(math.log(20) / 10, rel=0.1)
        assert found.accuracy("count") <= 10
        assert table.count().quote(errors={"count": 10}) == found
        both = table.count().sum("cost", low=0, high=200)
        assert both.quote(errors={"count": 10}) == both.quote_for(errors={"count": 10}).quote
        with pytest.raises(ParameterError, match=r"'count': \.\.\., 'sum_cost': \.\.\."):
            both.quote(error=10)
        with pytest.raises(ParameterError, match="give one of the two"):
            table.count().quote(epsilon=1.0, error=10)
        with pytest.raises(ParameterError, match="or the errors that are wanted"):
            table.count().quote()

    def test_what_is_left_is_told_in_lines(self, table, tmp_path):
        """The balance in its own words, not as a record."""
        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
            ledger.open_budget("study", hs.Guarantee(epsilon=2.0, neighbours="add-remove"))
            quote = table.count().quote(epsilon=0.5, ledger=ledger, budget="study")
        assert quote.explain().endswith("the budget after this query:\n" + quote.left.explain())
        assert "Balance(" not in quote.explain()

    @pytest.mark.parametrize("text", ["cost = 5", "city='Rome' and cost >= 3"])
    def test_a_single_equals_sign_is_explained(self, table, text):
        """Equal is ==; what cannot be read for another reason is not put down to it."""
        with pytest.raises(ParameterError, match="equal is written =="):
            table.filter(text)
        for other in ("cost >", "cost = ", "cost == 5 5"):
            with pytest.raises(ParameterError, match="cannot read") as caught:
                table.filter(other)
            assert "equal is" not in str(caught.value)


def test_no_share_is_nothing_and_no_quantile_the_largest_value():
    """In whole percent a small share is 0 %; with six digits 0.9998999 is another quantile."""
    table = hs.table(pa.table({"x": [float(i) for i in range(100)]}))
    shared = table.count(weight=1e-6).sum("x", low=0, high=100).quote(epsilon=1)
    assert "; 0.0001 % of epsilon" in shared.explain(distances=False)
    asked = table.quantiles("x", [0.9998999, 0.5], low=0, high=100)
    assert "rank of quantile 0.9998999 within" in asked.quote(epsilon=1).explain()
    known = hs.certify(asked.release(epsilon=1.0)).explain()
    assert "Quantiles 99.98999 %, 50 % of x" in known
