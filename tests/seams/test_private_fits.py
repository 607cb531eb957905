"""A private fit: what is sampled is what is fitted, and a row is encoded by itself."""

import ctypes
import math
from collections import UserList, deque

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

import hushed as hs
from hushed.errors import BadRows, ParameterError
from hushed.sklearn import PrivateEstimator
from hushed.sklearn._examples import Scheme, encode_privately, take_labels, take_rows

WIDE = 1000.0


def visits(rng, count):
    """A feature of another unit than that of the fit, and a number that follows from it."""
    x = rng.uniform(-WIDE, WIDE, count)
    return np.column_stack([x, x / WIDE + 0.1 * rng.normal(size=count)])


class Own:
    """A population of the caller's own, of frames' worth of Python lists."""

    def draw(self, rng, count):
        return visits(rng, count).tolist()

    def describe(self):
        return {"kind": "visits"}


POPULATIONS = {
    "simulator": hs.populations.Simulator(visits),
    "table": hs.populations.PublicTable(visits(np.random.default_rng(1), 2000)),
    "own": Own(),
}


class TestUnits:
    @pytest.mark.parametrize("name", POPULATIONS)
    def test_a_population_in_the_units_of_the_rows_is_scaled_as_they_are(self, name):
        """A slope by hand, of rows scaled by hand: at most a fifth of the pairs may move further.

        Fits of rows in their own units moved a thousandth as far, and all pairs were beyond that.
        """
        rows = visits(np.random.default_rng(0), 50)
        model = PrivateEstimator(
            LinearRegression(fit_intercept=False),
            POPULATIONS[name],
            gamma=0.2,
            bounds=(-WIDE, WIDE),
            workers=1,
        ).fit(rows[:, :1], rows[:, 1])

        def slope(table):
            x = table[:, 0] / WIDE
            return x @ table[:, 1] / (x @ x)

        rng = np.random.default_rng(2)
        moved = []
        for _ in range(400):
            table = visits(rng, 51)
            other = np.vstack([table[:49], table[50:]])
            moved.append(abs(slope(table[:50]) - slope(other)))
        assert np.mean(np.array(moved) > model.certificate_.sensitivity) <= 0.2
        assert np.max(moved) < 20 * model.certificate_.sensitivity  # and it is no other unit

    def test_the_label_of_a_population_is_moved_into_the_range_that_private_ones_are(self):
        """Numbers beyond it are no numbers that a fit sees."""
        model = PrivateEstimator(
            LinearRegression(),
            hs.populations.Simulator(lambda rng, n: visits(rng, n) * [1.0, 1e6]),
            gamma=0.2,
            bounds=(-WIDE, WIDE),
            labels=(-1, 1),
            workers=1,
        )
        rows = visits(np.random.default_rng(0), 50)
        assert model.fit(rows[:, :1], rows[:, 1]).certificate_.sensitivity < 10

    def test_a_class_of_a_population_is_a_position(self):
        """Names of classes would be other numbers than those that the private labels become."""

        def named(rng, count):
            return np.column_stack([rng.uniform(-1, 1, count), rng.integers(1, 3, count)])

        model = PrivateEstimator(
            LogisticRegression(), hs.populations.Simulator(named), labels=[1, 2], gamma=0.3
        )
        with pytest.raises(BadRows, match="position of the class among the 2 labels"):
            model.fit(np.linspace(-1, 1, 20)[:, None], [1, 2] * 10)

    @pytest.mark.parametrize("labels", [["yes", "no"], [1, 0], [0, 1, 1]])
    def test_positions_are_among_classes_in_order(self, labels):
        """A model has its classes in ascending order, and position 0 would be the other one."""
        model = PrivateEstimator(
            LogisticRegression(), hs.populations.Simulator(visits), labels=labels, gamma=0.3
        )
        with pytest.raises(ParameterError, match="in order they are"):
            model.fit(np.linspace(-1, 1, 20)[:, None], [labels[0], labels[1]] * 10)

    @pytest.mark.parametrize(
        "shown", [lambda rng, n: rng.uniform(size=n), lambda rng, n: ["a"] * n]
    )
    def test_a_population_without_the_columns_of_a_fit_is_refused(self, shown):
        """Before it would be scaled by the ranges of other columns."""
        model = PrivateEstimator(Ridge(), hs.populations.Simulator(shown), gamma=0.3)
        with pytest.raises(BadRows, match="2 features as in X, and the label"):
            model.fit(np.zeros((20, 2)), np.zeros(20))


class Liar:
    """A label that fails when it is compared, and says that it is any other one."""

    def __hash__(self):
        return hash(1)

    def __eq__(self, other):
        raise RuntimeError


def fit_labels(y, labels):
    """Fit a line through 0 to labels, with so little noise that fits can be compared."""
    x = np.linspace(-1, 1, len(y))[:, None]
    model = PrivateEstimator(
        LogisticRegression(C=0.1),
        epsilon=1e5,
        route="objective",
        bounds=(-1, 1),
        labels=labels,
    ).fit(x, y)
    return np.append(model.coef_, model.intercept_)


class TestOneRow:
    """A promise for every table: one label changes the fit as one row does."""

    @pytest.mark.parametrize(
        "odd",
        ["unknown", None, [1, 2], {"a": 1}, Liar(), b"x", 0.5],
        ids=lambda each: type(each).__name__,
    )
    def test_a_label_of_another_type_makes_no_others_of_those_beside_it(self, odd):
        """In an array, numbers beside a text are texts, and none of them a class."""
        labels = [0] * 100 + [1] * 100
        plain = fit_labels(labels, [0, 1])
        assert fit_labels([odd, *labels[1:]], [0, 1]) == pytest.approx(plain, abs=0.1)

    def test_a_label_without_a_list_of_its_own_makes_no_lists_of_those_that_have_one(self):
        """Whether labels are a column of one is told by each of them."""
        labels = [[0]] * 100 + [[1]] * 100
        plain = fit_labels([0] * 100 + [1] * 100, [0, 1])
        assert fit_labels(labels, [0, 1]) == pytest.approx(plain, abs=0.1)
        assert fit_labels([0, *labels[1:]], [0, 1]) == pytest.approx(plain, abs=0.1)

    @pytest.mark.parametrize("kind", [deque, UserList])
    def test_a_sequence_of_labels_is_read_as_a_list(self, kind):
        """NumPy makes texts of all labels in it, beside one."""
        labels = [0] * 100 + [1] * 100
        plain = fit_labels(labels, [0, 1])
        assert fit_labels(kind(["unknown", *labels[1:]]), [0, 1]) == pytest.approx(plain, abs=0.1)
        assert (_encode(kind([["0.25"], [1 / 3]]))[1:] == _encode([[0.25], [1 / 3]])[1:]).all()

    def test_a_text_in_a_list_of_rows_rounds_no_number_beside_it(self):
        """Written as texts, numbers of 32 bits are other ones in 64."""
        third = np.float32(1 / 3)
        rows = [[third]] * 20
        beside = [["0.25"], *rows[1:]]
        found = [_encode(each)[1:] for each in (rows, beside)]
        assert (found[0] == found[1]).all()


def _encode(rows):
    return encode_privately(Scheme(features=1, labelled=False), take_rows(rows), None)


def test_the_number_of_rows_is_sampled_for_and_so_must_be_public(tmp_path):
    """It stands on the certificate, where a promise for one row more or less makes it private."""
    rows = visits(np.random.default_rng(0), 50)
    ledger = hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    ledger.open_budget("b", hs.Guarantee(epsilon=1, gamma=0.5, neighbours="add-remove"))
    model = PrivateEstimator(
        LinearRegression(),
        POPULATIONS["simulator"],
        neighbours="add-remove",
        ledger=ledger,
        budget="b",
    )
    with pytest.raises(ParameterError, match="use route='objective' or 'blocks'"):
        model.fit(rows[:, :1], rows[:, 1])
    assert ledger.entries("b") == ()


FRAME = pd.DataFrame(np.random.default_rng(1).uniform(size=(2000, 3)), columns=["b", "a", "label"])
ORDERED = {
    "rows and labels": (FRAME[["b", "a"]], FRAME["label"]),
    "table": hs.populations.PublicTable(FRAME),
    "simulator": hs.populations.Simulator(
        lambda rng, n: pd.DataFrame(rng.uniform(size=(n, 3)), columns=FRAME.columns)
    ),
}


class TestColumns:
    """Columns are taken by their places: names in another order mean other columns."""

    ROWS = np.random.default_rng(0).uniform(size=(40, 2)) * [1, 1000]

    @pytest.mark.parametrize("name", ORDERED)
    def test_public_columns_in_another_order_are_refused(self, name):
        """Their noise would be made for the other columns."""
        model = PrivateEstimator(
            LinearRegression(), ORDERED[name], gamma=0.4, calibration="marginal", workers=1
        )
        private, y = pd.DataFrame(self.ROWS, columns=["a", "b"]), self.ROWS[:, 0]
        for each in (private, pl.DataFrame(self.ROWS, schema=["a", "b"])):
            with pytest.raises(BadRows, match="in the order of the public ones"):
                model.fit(each, y)
        assert model.fit(private[["b", "a"]], y).feature_names_in_.tolist() == ["b", "a"]
        model.fit(self.ROWS[:, ::-1], y)  # an array has no names

    def test_public_ranges_in_another_order_are_refused(self):
        """As those of a public frame: each would be that of another column."""
        frame = pd.DataFrame({"age": [20.0, 90.0] * 20, "income": [0.0, 1e5] * 20})
        turned = frame[["income", "age"]]
        options = {"route": "objective", "labels": (0, 1)}
        for ends in ((frame.min(), frame.max()), [frame.min(), frame.max()]):
            model = hs.sklearn.PrivateEstimator(Ridge(), bounds=ends, **options)
            model.fit(frame, [0.0, 1.0] * 20)
            with pytest.raises(BadRows, match="in this order"):
                model.fit(turned, [0.0, 1.0] * 20)

    def test_public_points_in_another_order_are_refused(self):
        """A prediction would be asked for at another place than that which is named."""
        points = pd.DataFrame([[0.0, 1.0]], columns=["b", "a"])
        options = {"route": "blocks", "delta": 1e-6, "radius": 1.0, "epsilon": 40.0, "blocks": 2}
        model = PrivateEstimator(LinearRegression(), points=points, **options)
        with pytest.raises(BadRows, match="in the order of the public ones"):
            model.fit(pd.DataFrame(self.ROWS, columns=["a", "b"]), self.ROWS[:, 0])


def test_what_was_paid_for_is_there_whatever_becomes_of_the_model():
    """A model that cannot be made of released numbers loses none of them."""

    class Broken(PrivateEstimator):
        def _make_model(self, *_):
            raise RuntimeError("no model")

    rows = visits(np.random.default_rng(0), 50)
    options = {"route": "objective", "bounds": (-WIDE, WIDE), "labels": (-2, 2)}
    model = Broken(Ridge(), **options)
    with pytest.raises(RuntimeError, match="no model"):
        model.fit(rows[:, :1], rows[:, 1])
    assert np.shape(model.release_.value) == (2,)
    assert model.guarantee_ == hs.Guarantee(epsilon=1.0)


def test_no_setting_of_numpy_loses_what_was_paid_for():
    """Coefficients of such ranges are too small for doubles, and become 0."""
    features, y = np.linspace(-1e300, 1e300, 40)[:, None], np.linspace(-1e-300, 1e-300, 40)
    ranges = {"bounds": (-1e300, 1e300), "labels": (-1e-300, 1e-300)}
    with np.errstate(all="raise"):
        model = PrivateEstimator(Ridge(), route="objective", **ranges).fit(features, y)
    assert model.coef_.tolist() == [0.0]


def test_certificates_say_what_became_of_missing_values():
    """It was the middle of the range, before the gate, which moves what is missing to an end."""
    public = visits(np.random.default_rng(1), 2000)
    known = {"pair": (public[:, :1], public[:, 1]), **POPULATIONS}
    rows = visits(np.random.default_rng(0), 40)
    for population in known.values():
        options = {"gamma": 0.4, "calibration": "marginal", "bounds": (-WIDE, WIDE), "workers": 1}
        model = PrivateEstimator(LinearRegression(), population, labels=(-2, 2), **options)
        told = model.fit(rows[:, :1], rows[:, 1].copy()).certificate_.explain()
        assert "what is missing is the middle of its range" in told
        assert "missing value became an end" not in told


class TestBadInput:
    """It is refused before the charge, in words."""

    @pytest.mark.parametrize("labels", [[0, "1"], ["a", b"a"], [0, None], [0, math.nan], [0, [1]]])
    @pytest.mark.parametrize("kind", [list, lambda given: np.array(given, dtype=object)])
    def test_classes_of_several_kinds(self, labels, kind):
        """As texts none was a private label, so that the answer was the same for all tables."""
        if labels[1] == [1]:
            kind = list
        model = PrivateEstimator(LogisticRegression(), route="objective", bounds=(-1, 1))
        with pytest.raises(ParameterError, match="labels must be all texts, or all finite numbers"):
            model.set_params(labels=kind(labels)).fit(np.zeros((20, 1)), [0, "1"] * 10)

    @pytest.mark.parametrize("centre", [[0.0], [0.0] * 3, [[0.0, 0.0], [0.0, 0.0]]])
    def test_a_centre_of_another_length_costs_nothing(self, tmp_path, centre):
        """No block would have an answer of that length, and all be paid for."""
        ledger = hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}")
        ledger.open_budget("b", hs.Guarantee(epsilon=40, delta=1e-6))
        options = {"route": "blocks", "delta": 1e-6, "radius": 1.0, "epsilon": 40.0, "blocks": 2}
        rows = visits(np.random.default_rng(0), 50)
        model = PrivateEstimator(
            LinearRegression(), centre=centre, ledger=ledger, budget="b", **options
        )
        with pytest.raises(ParameterError, match="list of 2 numbers, those of coef_ and intercept"):
            model.fit(rows[:, :1], rows[:, 1])
        assert ledger.entries("b") == ()

    @pytest.mark.parametrize(
        ("population", "problem"),
        [
            ((np.zeros((9, 3)), np.zeros(9)), r"the shape \(9, 3\)"),
            ((np.zeros(9), np.zeros(9)), r"the shape \(9,\)"),
            ((np.zeros((9, 1)), np.zeros(8)), "dimensions"),
            ((np.zeros((9, 1)), ["a"] * 9), "could not convert"),
            (([[1.0], [1.0, 2.0]], [0.0, 0.0]), "inhomogeneous"),
        ],
    )
    def test_public_rows_that_are_no_table_of_such_features(self, population, problem):
        """A message of NumPy alone says nothing of what is wanted."""
        model = PrivateEstimator(Ridge(), population, gamma=0.3)
        with pytest.raises(BadRows, match=f"1 feature as in X, and a label.*{problem}"):
            model.fit(np.zeros((20, 1)), np.zeros(20))

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"points": ["a"]}, "points must be rows of 1 number$"),
            ({"points": [[10**400]]}, "points must be rows of 1 number$"),
            ({"points": []}, "points must be rows of 1 number$"),
            ({"cutoff": [1.0]}, "cutoff must be a finite number above 0"),
            ({"estimator": ["a"]}, "must be one of scikit-learn, got list"),
            ({"estimator": Ridge}, r"got the class Ridge: give Ridge\(\)"),
        ],
    )
    def test_what_is_no_option_is_named(self, options, words):
        """A message of another library says of which option nothing."""
        known = {"estimator": Ridge(), "route": "objective", "bounds": (-1, 1), "labels": (0, 1)}
        with pytest.raises(ParameterError, match=words):
            PrivateEstimator(**known | options).fit(np.zeros((20, 1)), np.zeros(20))


def _framed(rng, count):
    return pd.DataFrame(visits(rng, count), columns=["x", "y"])


RANGED = {"x": (-WIDE, WIDE), "y": (-9.0, 9.0)}
RANGED_POPULATIONS = {
    "table": hs.populations.PublicTable(_framed(np.random.default_rng(1), 400), bounds=RANGED),
    "array": hs.populations.PublicTable(
        visits(np.random.default_rng(1), 400), bounds=list(RANGED.values())
    ),
    "simulator": hs.populations.Simulator(_framed, bounds=RANGED),
}


@pytest.mark.slow_cases("False-simulator", "True-simulator")
@pytest.mark.parametrize("name", RANGED_POPULATIONS)
@pytest.mark.parametrize("scaled", [True, False])
def test_ranges_of_a_population_are_those_of_its_columns_as_they_are_encoded(name, scaled):
    """They were held against scaled rows, or looked for by name in an array: both was refused."""
    rows = visits(np.random.default_rng(0), 20)
    model = PrivateEstimator(
        LinearRegression(),
        RANGED_POPULATIONS[name],
        gamma=0.4,
        calibration="marginal",
        bounds=(-WIDE, WIDE) if scaled else None,
        workers=1,
    ).fit(rows[:, :1], rows[:, 1])
    end = 1.0 if scaled else WIDE
    found = [each[:3] for each in model.certificate_.sampling.support]
    assert found == [("0", -end, end), ("1", -9.0, 9.0)]


class Talking:
    """A label that says something, and fails, when NumPy asks how many parts it has."""

    def __array__(self, *given, **named):
        print("SECRET")
        raise RuntimeError("SECRET")

    def __len__(self):
        return len(self.__array__())


@pytest.mark.parametrize("label", [[Talking()], (Talking(),), [[Talking()]], Talking()])
def test_what_a_label_in_a_list_says_is_not_heard(label, capsys):
    """Its error was shown as it was, and what it printed."""
    found = take_labels([1, label, [0], np.array([[2]]), [["a"]]])
    assert found[[0, 2, 3, 4]].tolist() == [1, 0, 2, "a"]
    assert type(found[1]) is Talking
    assert capsys.readouterr().out == ""


POINTS = np.linspace(-1, 1, 40)[:, None]
LOUD = {
    "liblinear": (LinearSVC(verbose=1), None),
    "libsvm": (SVC(verbose=True), POINTS),
    "within another one": (OneVsRestClassifier(LinearSVC(verbose=1)), POINTS),
    "Python": (SGDClassifier(verbose=1), None),
}


@pytest.mark.parametrize("name", LOUD)
def test_what_a_fit_says_from_c_code_is_not_said(name, capfd):
    """The least objective and the number of support vectors were printed, without any noise."""
    fitted, points = LOUD[name]
    rng = np.random.default_rng(0)
    public, rows = (rng.normal(size=(count, 1)) for count in (200, 20))
    given, labels = ((each[:, 0] + rng.normal(size=len(each)) > 0) * 1 for each in (public, rows))
    options = {"points": points, "gamma": 0.2, "calibration": "marginal", "workers": 1}
    model = PrivateEstimator(fitted, (public, given), **options).fit(rows, labels)
    ctypes.CDLL(None).fflush(None)
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", "")
    assert model.get_params()["estimator"].get_params() == fitted.get_params()


def test_a_ridge_that_classifies_predicts():
    """It was charged, and then predicted nothing: it asks what the fit alone sets."""
    rng = np.random.default_rng(0)
    public, rows = (rng.normal(size=(count, 1)) for count in (200, 20))
    given, labels = (np.where(each[:, 0] > 0, "up", "low") for each in (public, rows))
    options = {"gamma": 0.2, "calibration": "marginal", "epsilon": 1e6, "workers": 1}
    model = PrivateEstimator(RidgeClassifier(), (public, given), **options).fit(rows, labels)
    above = public @ model.coef_[0] + model.intercept_[0] > 0
    assert model.predict(public).tolist() == np.where(above, "up", "low").tolist()
    assert (model.predict(public) == given).mean() > 0.8


@pytest.mark.parametrize("regressor", [PoissonRegressor, GammaRegressor, TweedieRegressor])
def test_a_generalised_model_predicts_by_its_link(regressor):
    """It was charged, and then predicted nothing: the link is set by the fit alone."""
    rng = np.random.default_rng(0)
    public, rows = (rng.uniform(size=(count, 1)) for count in (200, 20))
    model = PrivateEstimator(
        regressor(alpha=1e-3),
        (public, np.exp(public[:, 0])),
        epsilon=1e6,
        gamma=0.4,
        calibration="marginal",
        workers=1,
    ).fit(rows, np.exp(rows[:, 0]))
    margins = model.intercept_ + public @ model.coef_
    plain = regressor is TweedieRegressor  # of power 0: it has no link to speak of
    assert model.predict(public) == pytest.approx(margins if plain else np.exp(margins))
    assert np.isfinite(model.score(public, np.exp(public[:, 0])))


def test_a_law_of_people_is_no_population_of_a_fit():
    """Their column would be taken for a feature."""
    people = hs.populations.Users(hs.populations.Uniform(low=[0, 0], high=[1, 1]), sizes=1)
    rows = np.random.default_rng(0).uniform(size=(20, 3))
    with pytest.raises(ParameterError, match="draws people"):
        PrivateEstimator(LinearRegression(), people, workers=1).fit(rows[:, :2], rows[:, 2])


DAYS = np.datetime64("2020-01-01", "D") + np.arange(400)
TIMES = {
    "array": lambda unit: DAYS.astype(f"M8[{unit}]")[:, None],
    "durations": lambda unit: (DAYS - DAYS[0]).astype(f"m8[{unit}]")[:, None],
    "objects": lambda unit: [[each] for each in DAYS.astype(f"M8[{unit}]")],
    "pandas": lambda unit: pd.DataFrame({"day": DAYS.astype(f"M8[{unit}]"), "x": 1.0}),
    "pandas, dates alone": lambda unit: pd.DataFrame({"day": DAYS.astype(f"M8[{unit}]")}),
    "polars": lambda unit: pl.DataFrame({"day": pl.Series(DAYS).cast(pl.Datetime(unit))}),
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("where", ["both", "population", "table", "label"])
def test_a_date_is_no_number_of_units_that_differ(name, where):
    """Seconds of public rows, nanoseconds of private ones: the movement was 1e9 times too small."""
    public, private, rng = TIMES[name]("ms"), TIMES[name]("ns"), np.random.default_rng(0)
    shape = np.shape(public)
    known, rows = rng.normal(size=shape), rng.normal(size=shape)[:20]
    given, label, fitted = (public, known[:, 0]), rng.normal(size=20), LinearRegression()
    if where == "both":
        rows = private[:20]
    elif where == "label":
        given, label = (known, known[:, 0]), np.asarray(private)[:20, 0]
    elif where == "table":
        given, fitted = hs.populations.PublicTable(public), PCA(n_components=1)
    model = PrivateEstimator(fitted, given, gamma=0.4, calibration="marginal", workers=1)
    with pytest.raises(BadRows, match=r"dates, times|could not be read|arrays of numbers"):
        model.fit(rows, label)
