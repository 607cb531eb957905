"""OpenDP as an oracle for maps, OpenDP's parts in our chains, and ours in OpenDP."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hushed import measurements as m
from hushed import transformations as t
from hushed.errors import BadRows, ParameterError, SpaceMismatch
from hushed.spaces import CHANGE_ONE, PRIVACY_PROFILE, PURE, SYMMETRIC, ZCDP, Cell, Column, Space

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib", "honest-but-curious")

FLOATS = Space(domain=Column(cell=Cell(missing=True)), metric=SYMMETRIC)
UNIT = Space(domain=Column(cell=Cell(low=0, high=1), size=10), metric=SYMMETRIC)
INTEGERS = Space(domain=Column(cell=Cell(type="int", low=-3, high=5)), metric=SYMMETRIC)
TEXTS = Space(domain=Column(cell=Cell(type="string")), metric=SYMMETRIC)
CLEAN = t.impute(0.5) >> t.clip(0, 1)

CHAINS = {
    "sum": (UNIT >> t.sum_of(), [0.25] * 10),
    "mean": (UNIT >> t.mean(), [0.25] * 5 + [0.75] * 5),
    "sum of integers": (INTEGERS >> t.sum_of(), [1, 2, 3]),
    "count": (TEXTS >> t.count(), ["a", "b"]),
    "histogram": (TEXTS >> t.histogram(["a", "b"]), ["a", "b", "a", "z"]),
    "histogram l2": (TEXTS >> t.histogram(["a", "b"], norm="l2"), ["a", "b", "a", "z"]),
    "integers": (INTEGERS >> t.histogram([0, 1]), [0, 1, 1, 5]),
    "unknown size": (FLOATS >> CLEAN >> t.sum_of(), [0.25, math.nan, 7.0]),
    "resized": (FLOATS >> CLEAN >> t.resize(10, 0.5) >> t.mean(), [0.5] * 12),
    "bounded": (UNIT >> t.to_change_one() >> t.sum_of(), [0.25] * 10),
    "there and back": (UNIT >> t.to_change_one() >> t.to_symmetric() >> t.mean(), [0.5] * 10),
    "from bounded": (
        Space(domain=UNIT.domain, metric=CHANGE_ONE) >> t.to_symmetric() >> t.sum_of(),
        [0.5] * 10,
    ),
}


def assert_stated(ours, theirs):
    """OpenDP's double, as the first decimal that is not below it."""
    assert Fraction(str(math.nextafter(ours, 0))) < Fraction(theirs) <= Fraction(str(ours))


@pytest.mark.parametrize("name", CHAINS)
def test_maps_and_answers_agree(name):
    """OpenDP's map and ours differ by what the arithmetic adds, and the answers by rounding."""
    chain, rows = CHAINS[name]
    theirs = m.to_opendp(chain)
    for d_in in (2, 4, 6):
        assert float(theirs.map(d_in)) == pytest.approx(chain.map(d_in).value, rel=1e-6)
    assert theirs(rows) == pytest.approx(chain(rows).tolist(), rel=1e-12)


@pytest.mark.parametrize("name", CHAINS)
def test_there_and_back(name):
    """A chain exported and put back takes the same rows, has OpenDP's map and its answers."""
    chain, rows = CHAINS[name]
    theirs = m.to_opendp(chain)
    back = m.from_opendp(theirs, dims=2)
    assert back.source == chain.source
    assert back.target.metric == chain.target.metric
    assert back.map(2).value == theirs.map(2)
    assert back(rows).tolist() == pytest.approx(chain(rows).tolist(), rel=1e-12)


def test_the_tight_variance():
    """For more than one replaced row our variance is tighter than OpenDP's, and never looser."""
    chain = UNIT >> t.variance()
    theirs = m.to_opendp(chain)
    assert chain.map(2).value == pytest.approx(theirs.map(2), rel=1e-9)
    for d_in in (4, 6, 8, 10):
        assert chain.map(d_in).value < theirs.map(d_in)
    assert chain.map(10).value == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("chain", "measure"),
    [
        (INTEGERS >> t.sum_of() >> m.laplace(2.0), PURE),
        (UNIT >> t.sum_of() >> m.laplace(2.0), PURE),
        (UNIT >> t.mean() >> m.gaussian(0.3), ZCDP),
        (TEXTS >> t.histogram(["a", "b"], norm="l2") >> m.gaussian(2.0), ZCDP),
        (TEXTS >> t.histogram(["a", "b"]) >> m.laplace(2.0), PURE),
    ],
)
def test_measurements_agree(chain, measure):
    """Losses under OpenDP's map and under ours are the same, up to what the grid adds."""
    theirs = m.to_opendp(chain)
    back = m.from_opendp(theirs, dims=2)
    assert back.measure == chain.measure == measure
    for d_in in (2, 4):
        assert chain.map(d_in) == pytest.approx(theirs.map(d_in), rel=1e-9)
        assert_stated(back.map(d_in), theirs.map(d_in))
    rows = {"float": [0.5] * 10, "int": [1, 2], "string": ["a"]}[chain.source.domain.cell.type]
    assert back(rows) is not None


class TestParts:
    def test_their_sum_behind_our_steps(self):
        """An OpenDP transformation follows ours, and our noise follows it."""
        domain = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False))
        theirs = m.from_opendp(dp.t.make_sum(domain, dp.symmetric_distance()))
        chain = FLOATS >> CLEAN >> theirs >> m.laplace(1.0)
        assert chain.map(1) == pytest.approx(1.0, rel=1e-6)
        assert isinstance(float(chain([0.25, math.nan])), float)

    def test_their_noise_behind_our_steps(self):
        """An OpenDP measurement ends a chain of ours; the loss is its own map of our distance."""
        theirs = dp.m.make_laplace(
            dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=2.0
        )
        chain = (UNIT >> t.sum_of()) >> m.from_opendp(theirs)
        assert_stated(chain.map(2), theirs.map((UNIT >> t.sum_of()).map(2).value))
        assert chain.guarantee(2).epsilon == pytest.approx(0.5)
        both = m.compose([chain, UNIT >> t.mean() >> m.gaussian(0.1)])
        assert both.map(2, ZCDP) == pytest.approx(chain.map(2, ZCDP) + 0.5, rel=1e-6)

    def test_membership_is_checked_for_them(self):
        """OpenDP sums what lies outside its declared bounds; in our chain it is refused."""
        domain = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=2)
        theirs = dp.t.make_sum(domain, dp.symmetric_distance())
        assert theirs([100.0, 0.0]) == 100.0
        with pytest.raises(BadRows):
            m.from_opendp(theirs)([100.0, 0.0])

    @pytest.mark.parametrize("vector", [False, True])
    def test_answers_are_not_rounded_to_single_floats(self, vector):
        """Neighbours 1 apart that round to 16 apart are told apart, so the map is not ours."""
        one, other = 2.0**27 + 8, 2.0**27 + 9
        assert abs(float(np.float32(one)) - float(np.float32(other))) == 16
        atom = dp.atom_domain(T="f32", nan=False)
        domain, metric = (
            (dp.vector_domain(atom, size=2), dp.l1_distance(T="f32"))
            if vector
            else (atom, dp.absolute_distance(T="f32"))
        )
        with pytest.raises(ParameterError, match="T='f64'"):
            m.from_opendp(dp.m.make_laplace(domain, metric, scale=1.0))

    def test_distances_are_not_rounded_to_single_floats(self):
        """Whole numbers under a distance in single floats are refused, too."""
        integers = dp.vector_domain(dp.atom_domain(T="i32"), size=2)
        with pytest.raises(ParameterError, match="f32"):
            m.from_opendp(dp.m.make_gaussian(integers, dp.l2_distance(T="f32"), scale=1.0))

    @pytest.mark.parametrize(
        ("kind", "answer", "nearest"),
        [
            ("i32", 2**31, 2**31 - 1),
            ("i32", -(2**40), -(2**31)),
            ("u64", -1, 0),
            ("i64", 2**53, 2**53),
        ],
    )
    def test_whole_answers_are_moved_into_the_range(self, kind, answer, nearest):
        """An answer beyond OpenDP's type does not tell of itself by an error."""
        theirs = dp.m.make_laplace(
            dp.atom_domain(T=kind), dp.absolute_distance(T=kind), scale=0.001
        )
        release = m.from_opendp(theirs)
        # A scale of 0.001 makes noise other than 0 with a chance of exp(-1000).
        assert release(answer) == nearest
        assert release.map(1) == theirs.map(1)

    def test_columns_of_narrow_integers_have_bounds(self):
        """Rows beyond OpenDP's type are refused by the space, before there are any rows."""
        theirs = dp.t.make_clamp(
            dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance(), (0, 10)
        )
        cell = m.from_opendp(theirs).source.domain.cell
        assert (cell.low, cell.high) == (-(2**31), 2**31 - 1)
        with pytest.raises(SpaceMismatch, match="clip"):
            _ = (
                Space(domain=Column(cell=Cell(type="int")), metric=SYMMETRIC)
                >> t.filter_rows(bool)
                >> m.from_opendp(theirs)
            )

    def test_sums_beyond_all_answers(self):
        """What exceeds 2**53 is moved there: no table makes the chain fail."""
        domain = dp.vector_domain(dp.atom_domain(bounds=(0, 2**50), T="i64"))
        theirs = m.from_opendp(dp.t.make_sum(domain, dp.symmetric_distance()))
        assert [int(theirs([2**50] * rows)) for rows in (7, 8, 9)] == [7 * 2**50, 2**53, 2**53]

    def test_approximate_measurements(self):
        """A fixed (epsilon, delta) of OpenDP is read as the worst curve with that promise."""
        pure = dp.m.make_laplace(
            dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=2.0
        )
        fixed = dp.c.make_approximate(pure)
        release = m.from_opendp(fixed)
        assert release.measure == PRIVACY_PROFILE
        assert release.map(2.0).epsilon(0.0) == pytest.approx(1.0, rel=1e-9)

    @pytest.mark.parametrize(
        "make",
        [
            dp.t.make_split_lines,
            lambda: dp.t.make_count_by_categories(
                dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance(), ["a"]
            ),
        ],
    )
    def test_what_has_no_equivalent_here(self, make):
        """Domains without equivalent, and answers of unknown length, are refused."""
        with pytest.raises(ParameterError):
            m.from_opendp(make())

    @pytest.mark.parametrize(
        "chain",
        [
            TEXTS >> t.histogram(["a"], norm="sup"),
            Space(domain=Column(cell=Cell(type="string", missing=True)), metric=SYMMETRIC)
            >> t.count(),
        ],
    )
    def test_what_has_no_equivalent_there(self, chain):
        """Steps without equivalent in OpenDP are refused by name."""
        with pytest.raises(ParameterError):
            m.to_opendp(chain)
