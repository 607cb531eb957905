"""Release: what can be checked is checked first, then charge, rows, noise, in this order."""

import copy
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed.errors import (
    BadFunction,
    BadRows,
    HushedError,
    ParameterError,
    PrivateRowsAsPopulation,
)
from hushed.ledger._notes import default_note

UNIT = hs.populations.Uniform(low=0, high=1)
DATA = np.random.default_rng(6).random(20)


def mean(rows):
    return rows.mean()


def laplace(f=mean, population=UNIT, *, rows=20, epsilon=1.0, **settings):
    s = hs.sample_sensitivity(f, population, rows=rows, workers=1, **settings)
    return hs.Laplace(s, epsilon=epsilon)


def test_the_answer_is_the_exact_one_plus_noise():
    """With much epsilon the released mean is the mean."""
    data = np.random.default_rng(0).random(20)
    r = hs.release(mean, data, laplace(epsilon=1e9))
    assert r.value == pytest.approx(data.mean(), abs=1e-8)
    assert type(r.value) is float


def test_what_is_certified_is_what_was_released():
    """An array that was computed on in place, as ``value /= 100``, was certified as it was then."""
    moved = hs.proven_sensitivity(1.0, "l2", argument="counts")
    mechanism = hs.Gaussian(moved, epsilon=1.0, delta=1e-6)
    released = hs.release(lambda rows: np.array([rows.sum(), 1.0]), np.ones(5), mechanism)
    value = released.value
    with pytest.raises(ValueError, match="read-only"):
        value /= 100
    polynomial = hs.mechanisms.BernsteinPolynomial(np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        polynomial.coefficients[0] = 0.0
    assert polynomial(0.5) == 1.0


@pytest.mark.slow
def test_charge_before_rows_before_noise(ledger, private):
    """The function sees a ledger that has been charged, and its rows are the private ones."""

    def watching(rows):
        ledger.log.append(("seen", float(np.max(rows))))
        return rows.mean()

    m = laplace(watching, epsilon=0.5)
    ledger.log.clear()
    hs.release(watching, private, m, ledger, budget="study", note="hello", outside="allow")
    canary, *rest = ledger.log  # the first sampled table again, before anything is charged
    assert canary[0] == "seen"
    assert canary[1] <= 1
    assert rest == [("charge", "study", m.guarantee, "hello"), ("seen", 987654.321)]


@pytest.mark.slow
def test_a_refusing_ledger_stops_everything(refusing_ledger, private):
    """When the charge is refused the function is never called on the private rows."""
    calls = []
    f = lambda r: calls.append(r.max()) or r.mean()  # noqa: E731
    mechanism = laplace(f)
    sampled = len(calls)
    with pytest.raises(PermissionError):
        hs.release(f, private, mechanism, refusing_ledger, budget="x")
    assert len(calls) == sampled + 1 > 1
    assert max(calls) <= 1


def test_a_failure_after_the_charge_stays_paid(ledger, private, assert_silent):
    """That the function failed on the private rows is an answer, too, and says no more."""

    def failing(rows):
        if (rows > 9e5).any():
            raise ValueError(f"value {rows.max()}")
        return rows.mean()

    with pytest.raises(BadFunction, match="ValueError on the private rows") as caught:
        hs.release(failing, private, laplace(failing), ledger, budget="study", outside="allow")
    assert len(ledger.log) == 1
    assert_silent(caught.value)


def row_error(rows):
    return rows["nowhere"]


PRIVATE_FAILURES = {
    "raises": lambda r: 1 / 0 if r.max() > 9e5 else r.mean(),
    "raises a value": lambda r: {}[r.max()] if r.max() > 9e5 else r.mean(),
    "exits": lambda r: sys.exit(str(r.max())) if r.max() > 9e5 else r.mean(),
    "returns NaN": lambda r: float("nan") if r.max() > 9e5 else r.mean(),
    "returns a text": lambda r: f"{r.max()}" if r.max() > 9e5 else r.mean(),
    "returns texts": lambda r: np.array(["Wilhelmina" * 9]) if r.max() > 9e5 else r.mean(),
    "returns another shape": lambda r: r[:7] if r.max() > 9e5 else r.mean(),
    "returns one number in an array": lambda r: r[:1] if r.max() > 9e5 else r.mean(),
    "returns a dict": lambda r: {r.max(): 1} if r.max() > 9e5 else r.mean(),
    "returns a set": lambda r: {r.max()} if r.max() > 9e5 else r.mean(),
    "returns a list of lists": lambda r: [[r.max()], [1, 2]] if r.max() > 9e5 else r.mean(),
    "chains": lambda r: chained(r) if r.max() > 9e5 else r.mean(),
    "exits when it is read": lambda r: Telling(r.max(), SystemExit) if r.max() > 9e5 else r.mean(),
    "stops when it is read": lambda r: (
        Telling(r.max(), GeneratorExit) if r.max() > 9e5 else r.mean()
    ),
    "raises when looked at": lambda r: Shy(r.max()) if r.max() > 9e5 else r.mean(),
}


class Telling:
    def __init__(self, number, kind):
        self.told = kind(f"{number} of Wilhelmina")

    def __array__(self, *given, **named):
        raise self.told


class Shy:
    def __init__(self, number):
        self.__dict__["number"] = number

    def __getattr__(self, name):
        raise ValueError(f"{self.__dict__['number']} of Wilhelmina")


def chained(rows):
    try:
        {}[rows.max()]
    except KeyError as cause:
        raise RuntimeError(f"{rows.max()} of Wilhelmina") from cause


@pytest.mark.parametrize("name", PRIVATE_FAILURES)
def test_no_failure_on_private_rows_shows_a_value(name, private, assert_silent):
    """Message, repr, traceback, cause and context of the error hold no canary."""
    f = PRIVATE_FAILURES[name]
    m = laplace(f)
    with pytest.raises(BadFunction) as caught:
        hs.release(f, private, m, outside="allow")
    assert_silent(caught.value)
    assert "another function" not in str(caught.value)


def test_the_shape_found_on_private_rows_is_withheld(private):
    """How many values the answer had is a fact about the private rows."""
    with pytest.raises(BadFunction) as caught:
        hs.release(lambda r: r[r > 0.03][:13], private, laplace())
    assert "13" not in str(caught.value)


def test_certificates_hold_no_private_value(private, assert_silent):
    """JSON, words and repr of a release from public sampling hold no canary but the answer's."""
    f = lambda rows: np.clip(rows, 0, 1).mean()  # noqa: E731
    r = hs.release(f, private, laplace(f))
    assert_silent(r.certificate.to_json())
    assert_silent(r.certificate.explain())
    assert_silent(repr(r.certificate))


@pytest.mark.slow_cases("pandas")
@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars"])
def test_private_rows_are_not_changed(kind):
    """A function that changes its rows on private data only changes a copy, or nothing."""
    numbers = np.random.default_rng(5).random(20)
    numbers[3] = 50.0
    make = {
        "array": np.array,
        "list": lambda x: [[float(v)] for v in x],
        "pandas": lambda x: pd.DataFrame({"x": x}),
        "polars": lambda x: pl.DataFrame({"x": x}),
    }[kind]

    def vandal(rows):
        values = np.array(rows, dtype=float)
        if values.max() > 2:
            if kind == "array":
                rows[:] = 0
            elif kind == "list":
                rows[0][0] = -1.0
                rows.clear()
            elif kind == "pandas":
                rows.loc[0, "x"] = -1.0
            else:
                rows.insert_column(0, pl.Series("y", [1.0] * 20))
        return values.mean()

    data = make(numbers)
    before = copy.deepcopy(data)
    population = hs.populations.Simulator(lambda rng, n: make(rng.random(n)), name="made")
    noise = laplace(vandal, population, epsilon=1e9)
    if kind == "array":  # as sampled, it cannot be written to
        with pytest.raises(BadFunction, match="ValueError on the private rows"):
            hs.release(vandal, data, noise)
    else:
        r = hs.release(vandal, data, noise)
        assert r.value == pytest.approx(numbers.mean(), abs=1e-7)
    assert str(data) == str(before)
    assert len(data) == 20


def bad_data():
    return {
        "empty": (np.array([]), "empty"),
        "one fewer": (np.zeros(19), "20 rows, the table has 19; sample it again with rows=19"),
        "one more": (np.zeros(21), "has 21"),
        "more columns": (np.zeros((20, 2)), "columns"),
        "another container": ([0.0] * 20, "list"),
        "a frame": (pd.DataFrame({"x": np.zeros(20)}), "pandas"),
        "texts": (np.array(["987654.321"] * 20), "scalars"),
        "objects": (np.array([987654.321] * 20, dtype=object), "scalars"),
        "long doubles": (np.zeros(20, dtype=np.longdouble), "longdouble"),
        "masked": (np.ma.array(np.zeros(20), mask=True), "masked"),
        "none": (None, "NoneType"),
        "a number": (987654.321, "float"),
        "a scalar array": (np.array(987654.321), "dimensions"),
    }


def test_a_failure_says_whether_it_was_paid(ledger):
    """NaN from the private rows: with a ledger the charge stays, without one it counts."""
    data = np.where(np.arange(20) == 3, np.nan, 0.5)
    m = hs.Laplace(hs.proven_sensitivity(0.05, argument="mean of 20 in [0, 1]"), epsilon=1.0)
    with pytest.raises(BadFunction, match=r"NaN or infinity.*the charge stays"):
        hs.release(mean, data, m, ledger, budget="study")
    assert len(ledger.log) == 1
    assert ledger.log[0][-1] == "Laplace: mean of 20 in [0, 1]"
    with pytest.raises(BadFunction, match="count the budget as spent"):
        hs.release(mean, data, m)


def test_a_ledger_is_opened_and_its_budget_named(ledger):
    """An address is no ledger, a ledger alone no budget, a budget alone no ledger: each is told."""
    for given, name, message in [
        ("sqlite:///t10.db", "a", r"ledger=hs.Ledger\(...\)"),
        (object(), "a", "a hs.Ledger, or an object"),
        (ledger, None, "budget='NAME'"),
        (None, "a", "no ledger to charge"),
    ]:
        with pytest.raises(ParameterError, match=message):
            hs.release(mean, DATA, laplace(), given, budget=name)
    assert ledger.log == []


@pytest.mark.parametrize("text", ["a\nb", "x" * 300, "\x00\x1b"])
def test_default_notes_fit_on_a_line(text):
    """Printable, and short enough for any ledger."""
    found = default_note(text)
    assert found.isprintable()
    assert 0 < len(found) <= 200


@pytest.mark.parametrize("name", bad_data())
def test_bad_rows_cost_nothing(name, ledger, assert_silent):
    """A table of another size, container or kind is refused before the charge and the function."""
    data, words = bad_data()[name]
    calls = []
    m = laplace()
    with pytest.raises(BadRows, match=words) as caught:
        hs.release(lambda r: calls.append(1) or 1.0, data, m, ledger, budget="x")
    assert ledger.log == []
    assert calls == []
    assert_silent(caught.value)


@pytest.mark.slow
def test_columns_must_be_those_that_were_sampled(ledger):
    """Another name, order, number or kind of columns is refused before the charge."""
    public = pd.DataFrame({"x": np.arange(9.0), "who": list("abcdefghi")})
    f = lambda r: r["x"].mean()  # noqa: E731
    m = laplace(f, hs.populations.PublicTable(public, promise="table"), rows=5)
    good = pd.DataFrame({"x": np.arange(5.0) + 0.5, "who": list("vwxyz")})
    for bad in (
        good.rename(columns={"x": "y"}),
        good[["who", "x"]],
        good[["x"]],
        good.assign(x=list("12345")),
        good.assign(more=1.0),
        pl.DataFrame({"x": good["x"].to_numpy(), "who": list("vwxyz")}),
    ):
        with pytest.raises(BadRows, match="the population's rows are"):
            hs.release(f, bad, m, ledger, budget="x")
    assert ledger.log == []
    hs.release(f, good, m, ledger, budget="x")
    hs.release(f, good.set_index(np.arange(5) + 100), m, ledger, budget="x")
    assert len(ledger.log) == 2


@pytest.mark.slow
def test_element_types_are_those_that_were_sampled():
    """Whole numbers reach the function as doubles, as was sampled; texts keep their letters."""
    seen = []

    def noting(rows):
        seen.append(rows.dtype)
        return rows.mean()

    mechanism = laplace(noting)
    seen.clear()
    hs.release(noting, np.arange(20), mechanism)
    assert seen == [np.float64] * 2  # on the first sampled table, and on the private one
    names = hs.populations.PublicTable(np.array(["Al", "Bob", "Cleo"], "U20"), promise="table")
    f = lambda r: np.char.str_len(r).mean()  # noqa: E731
    r = hs.release(f, np.array(["Maximilian"] * 20), laplace(f, names, epsilon=1e9))
    assert r.value == pytest.approx(10, abs=1e-6)


def test_structured_arrays_are_released():
    """Named fields survive sampling and release."""

    def draw(rng, n):
        table = np.zeros(n, dtype=[("x", "f8"), ("k", "i4")])
        table["x"] = rng.random(n)
        return table

    f = lambda r: r["x"].mean()  # noqa: E731
    m = laplace(f, hs.populations.Simulator(draw), epsilon=1e9)
    data = draw(np.random.default_rng(5), 20)
    assert hs.release(f, data, m).value == pytest.approx(data["x"].mean(), abs=1e-8)
    with pytest.raises(BadRows, match="the population's rows are"):
        hs.release(f, np.zeros(20, dtype=[("y", "f8"), ("k", "i4")]), m)


def test_batch_functions_are_given_a_stack_of_one():
    """A function of stacked tables is released on the private table, not on its rows as tables."""
    f = lambda t: t.mean(axis=1)  # noqa: E731
    square = hs.populations.Uniform(low=[0] * 5, high=[1] * 5)
    m = laplace(f, square, rows=5, batch=True, epsilon=1e9)
    data = np.zeros((5, 5))
    data[0] = 1  # rows and columns are as many: means of rows would fit the shape
    assert hs.release(f, data, m).value == pytest.approx([0.2] * 5, abs=1e-6)


@pytest.mark.parametrize("mechanism", ["population", "sensitivity", None, 1.0])
def test_what_is_no_mechanism_is_refused(mechanism, ledger):
    """Mixed-up arguments are named before anything happens."""
    found = {"population": UNIT, "sensitivity": laplace().sensitivity}.get(mechanism, mechanism)
    with pytest.raises(ParameterError, match="mechanism"):
        hs.release(mean, np.zeros(20), found, ledger, budget="x")
    with pytest.raises(ParameterError, match="function"):
        hs.release(np.zeros(20), mean, laplace(), ledger, budget="x")
    with pytest.raises(ParameterError, match="budget"):
        hs.release(mean, np.zeros(20), laplace(), ledger)
    assert ledger.log == []


def test_what_the_mechanism_cannot_release_costs_nothing(ledger):
    """Scores that are no list, a wrong lattice, or too much noise are refused before the charge."""
    table = lambda r: np.array([[r.mean(), 0], [1, 2]])  # noqa: E731
    s = hs.sample_sensitivity(table, UNIT, rows=20, norm="sup", workers=1)
    with pytest.raises(ParameterError, match="one list of scores"):
        hs.release(table, DATA, hs.Exponential(s, epsilon=1), ledger, budget="x")
    with pytest.raises(ParameterError, match="11 lattice values"):
        hs.release(table, DATA, hs.Bernstein(s, epsilon=1), ledger, budget="x")
    coarse = laplace(epsilon=1e-17)
    with pytest.raises(ParameterError, match="noise"):
        hs.release(mean, DATA, coarse, ledger, budget="x")
    assert ledger.log == []


def others(rows):
    return {
        "the same object": rows,
        "a view": rows[:],
        "a part": rows[::3],
    }


@pytest.mark.parametrize("name", others(np.zeros(1)))
def test_private_rows_as_population_are_refused(name, ledger):
    """However they are handed in, before the charge; and the message says what to do."""
    rows = np.random.default_rng(7).random((60, 2))
    public = hs.populations.PublicTable(others(rows)[name], promise="table")
    with pytest.raises(PrivateRowsAsPopulation, match="data_dependent=True"):
        hs.release(mean, rows, laplace(population=public, rows=60), ledger, budget="x")
    assert ledger.log == []


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: hs.populations.PublicTable(rows, name="visits"),
        lambda rows: hs.populations.Uniform(low=float(rows.min()), high=float(rows.max())),
        lambda rows: hs.populations.Normal(mean=float(rows.max()), std=1.0),
        lambda rows: hs.populations.Exponential(rate=float(rows.max())),
        lambda rows: hs.populations.Simulator(lambda rng, n: rng.choice(rows, n), name="boot"),
    ],
)
def test_a_declared_private_population_is_marked_everywhere(make, private, assert_silent):
    """A release with data_dependent=True is marked everywhere and leaves its numbers out."""
    m = laplace(population=make(private), data_dependent=True)
    r = hs.release(mean, private, m)
    c = r.certificate
    assert m.guarantee.data_dependent
    assert c.guarantee.data_dependent
    assert c.sampling.population_is_public is False
    assert '"data_dependent": true' in c.to_json()
    assert '"population_is_public": false' in c.to_json()
    assert c.explain().startswith("WARNING: NOT A PRIVACY GUARANTEE")
    assert "made from the private rows" in c.explain()
    assert set(c.sampling.population) <= {"kind", "name"}
    assert c.sampling.movements == ()
    assert hs.Certificate.from_json(c.to_json()) == c


def test_canaries_in_a_declared_private_range_do_not_reach_the_certificate(private, assert_silent):
    """The ends of the range were private values; description and words leave them out."""
    source = hs.populations.Uniform(low=987654.321, high=987654.421)
    c = hs.release(mean, private, laplace(population=source, data_dependent=True)).certificate
    assert_silent(c.to_json())
    assert_silent(c.explain())


def test_other_errors_of_hushed_are_silent(private, assert_silent):
    """Every refusal of a release with canary rows, of any class, shows no value."""
    public = hs.populations.PublicTable(private, promise="table")
    attempts = [
        lambda: hs.release(mean, private, laplace(population=public)),
        lambda: hs.release(mean, private[:19], laplace()),
        lambda: hs.release(mean, private.astype(object), laplace()),
        lambda: hs.release(mean, private.tolist(), laplace()),
        lambda: hs.release(mean, private, private),
        lambda: hs.release(private, private, laplace()),
        lambda: hs.sample_sensitivity(private, UNIT, rows=20),
        lambda: hs.sample_sensitivity(mean, private, rows=20),
        lambda: hs.Laplace(private, epsilon=1.0),
    ]
    for attempt in attempts:
        with pytest.raises(HushedError) as caught:
            attempt()
        assert_silent(caught.value)


@pytest.mark.slow
def test_release_noise_cannot_be_seeded():
    """Two processes with every known seed set release different values."""
    script = (
        "import random, numpy as np, hushed as hs\n"
        "random.seed(0); np.random.seed(0)\n"
        "s = hs.proven_sensitivity(1.0, argument='x')\n"
        "print(hs.Laplace(s, epsilon=1.0).draw(0.0))"
    )
    import os
    from pathlib import Path

    env = os.environ | {"PYTHONPATH": str(Path(hs.__file__).parents[1]), "PYTHONHASHSEED": "0"}
    out = {
        subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(out) == 2


def test_all_mechanisms_release():
    """Gaussian, exponential and Bernstein releases have values of their kinds."""
    data = np.random.default_rng(1).random(20)
    vector = lambda r: np.array([r.mean(), r.var()])  # noqa: E731
    s2 = hs.sample_sensitivity(vector, UNIT, rows=20, norm="l2", workers=1)
    r = hs.release(vector, data, hs.Gaussian(s2, epsilon=1.0, delta=1e-6))
    assert r.value.shape == (2,)
    assert r.certificate.mechanism.values == 2
    sup = hs.sample_sensitivity(vector, UNIT, rows=20, norm="sup", workers=1)
    assert hs.release(vector, data, hs.Exponential(sup, epsilon=1.0)).value in (0, 1)
    curve = hs.on_lattice(lambda rows: lambda x: x * rows.mean(), lattice=3)
    s = hs.sample_sensitivity(curve, UNIT, rows=20, norm="sup", workers=1)
    polynomial = hs.release(curve, data, hs.Bernstein(s, epsilon=1.0, lattice=3)).value
    assert polynomial([0.0, 1.0]).shape == (2,)


def test_proven_sensitivities_release_any_number_of_rows():
    """Without sampling there is no table to compare with; an empty one is still refused."""
    m = hs.Laplace(hs.proven_sensitivity(1e-9, argument="clipped"), epsilon=1.0)
    assert hs.release(lambda r: np.clip(r, 0, 1).mean(), np.ones(7), m).value == pytest.approx(1)
    with pytest.raises(BadRows, match="empty"):
        hs.release(mean, [], m)


def test_an_empty_table_is_a_neighbour_where_rows_are_added():
    """Under add-remove the empty table is answered like the table with a row more."""
    s = hs.proven_sensitivity(1, neighbours="add-remove", argument="a count moves by one")
    value = hs.release(len, [], hs.Laplace(s, epsilon=1e3)).value
    assert value == pytest.approx(0, abs=0.1)


class TestSilence:
    """Nothing that a function says while it sees private rows leaves the release."""

    def test_prints_and_warnings_are_withheld(self, private, capsys, recwarn):
        """Output and warnings of the call on private rows are dropped."""

        def chatty(rows):
            if rows.max() > 9e5:
                print("row", rows.max())
                warnings.warn(f"row {rows.max()}", stacklevel=2)
            return rows.mean()

        mechanism = laplace(chatty)
        recwarn.clear()  # of the sampling, which is on public rows
        hs.release(chatty, private, mechanism, outside="allow")
        out = capsys.readouterr()
        assert "987654" not in out.out + out.err
        assert not recwarn.list

    @pytest.mark.parametrize(
        "kind", [KeyboardInterrupt, GeneratorExit, type("S1", (BaseException,), {})]
    )
    def test_exceptions_of_every_kind_are_stripped(self, private, kind, assert_silent):
        """Not even exceptions that are no Exception carry their text out."""

        def failing(rows):
            if rows.max() > 9e5:
                raise kind(f"row {rows.max()}")
            return rows.mean()

        with pytest.raises((BadFunction, KeyboardInterrupt)) as caught:
            hs.release(failing, private, laplace(failing), outside="allow")
        assert_silent(caught.value)
        assert "S1" not in str(caught.value)

    @pytest.mark.parametrize("base", [str, object])
    def test_names_of_types_are_stripped(self, private, base, assert_silent):
        """The type of what a function gives back may be named after a row: it is not shown."""

        def named(rows):
            return rows.mean() if rows.max() < 9e5 else type(f"row_{rows.max():.0f}", (base,), {})()

        with pytest.raises(BadFunction, match="object") as caught:
            hs.release(named, private, laplace(named), outside="allow")
        assert_silent(caught.value)

    def test_labels_of_rows_do_not_reach_the_function(self):
        """A pandas index is renumbered as in the sampled frames."""
        f = lambda d: d["a"].mean() + d.index.max()  # noqa: E731
        public = pd.DataFrame({"a": np.linspace(0, 1, 50)})
        s = hs.sample_sensitivity(f, hs.populations.PublicTable(public, promise="table"), rows=20)
        secret = pd.DataFrame({"a": np.linspace(0.001, 0.9, 20)}, index=range(5_550_000, 5_550_020))
        value = hs.release(f, secret, hs.Laplace(s, epsilon=1e6)).value
        assert value == pytest.approx(secret["a"].mean() + 19, abs=1e-3)

    def test_private_column_names_stay_unnamed(self):
        """A mismatch of columns names the sampled column and the place, not the private name."""
        f = lambda d: float(d.to_numpy().mean())  # noqa: E731
        public = pd.DataFrame({"age": np.linspace(0, 1, 50)})
        s = hs.sample_sensitivity(f, hs.populations.PublicTable(public, promise="table"), rows=20)
        secret = pd.DataFrame({"Alice": np.linspace(0, 1, 20)})
        with pytest.raises(hs.errors.BadRows, match=r"column 1 .* 'age'") as caught:
            hs.release(f, secret, hs.Laplace(s, epsilon=1.0))
        assert "Alice" not in str(caught.value)


def test_budget_without_ledger_is_refused(private):
    """Naming a budget that nobody charges is an error, not a free release."""
    with pytest.raises(hs.errors.ParameterError, match="no ledger"):
        hs.release(np.mean, private, laplace(), budget="census")
