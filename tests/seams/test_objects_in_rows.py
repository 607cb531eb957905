"""Objects of the user in rows: compared by content, copied, or refused in words."""

import copy
import datetime
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed.errors import BadFunction, BadRows, ParameterError


class Person:
    """A class without an equality of its own."""

    def __init__(self, age):
        self.age = age


class Slots(Person):
    """The same without a dictionary."""

    __slots__ = ("age",)


class Loop(Person):
    """An object that holds itself."""

    def __init__(self, age):
        super().__init__(age)
        self.me = self


class Locked(Person):
    """An object that cannot be copied."""

    def __init__(self, age):
        super().__init__(age)
        self.lock = threading.Lock()


FRAMES = {
    "list": (lambda people: people, lambda rows: rows),
    "array": (lambda people: np.array(people, dtype=object), lambda rows: rows.tolist()),
    "pandas": (lambda people: pd.DataFrame({"p": people}), lambda rows: rows["p"].tolist()),
    "polars": (
        lambda people: pl.DataFrame([pl.Series("p", people, dtype=pl.Object)]),
        lambda rows: rows["p"].to_list(),
    ),
}


def sampled(kind, held, function):
    """Sensitivity of a function of the people, and private rows."""
    made, read = FRAMES[held]
    population = hs.populations.PublicTable(made([kind(age % 90) for age in range(400)]))

    def asked(rows):
        return function(read(rows))

    s = hs.sample_sensitivity(asked, population, rows=12, gamma=0.3, workers=1)
    return asked, s, made([kind(age) for age in range(12)])


def mean_age(people):
    """Mean age."""
    return sum(each.age for each in people) / len(people)


def grow_older(people):
    """Mean age, a year later."""
    for each in people:
        each.age += 1
    return mean_age(people)


def order_inside(people):
    """Write what changes no answer."""
    for each in people:
        each.seen = True
    return mean_age(people)


@pytest.mark.parametrize("held", FRAMES)
@pytest.mark.parametrize("kind", [Person, Slots])
def test_objects_without_an_equality_are_compared_by_content(kind, held):
    """A class need not be a dataclass to be sampled and released."""
    asked, s, private = sampled(kind, held, mean_age)
    assert 0 < s.value <= 89 / 12
    assert hs.release(asked, private, hs.Laplace(s, epsilon=1.0)).entry is None


@pytest.mark.parametrize("held", FRAMES)
@pytest.mark.parametrize("function", [grow_older, order_inside])
def test_a_function_that_writes_into_objects_is_refused(function, held):
    """In every container, though the frames themselves stay as they are."""
    with pytest.raises(BadFunction, match="changes the rows"):
        sampled(Person, held, function)


@pytest.mark.parametrize("held", FRAMES)
@pytest.mark.parametrize(
    ("kind", "words"), [(Loop, "whether two are equal"), (Locked, "cannot be copied")]
)
def test_objects_that_nobody_can_compare_are_refused_in_words(kind, words, held):
    """The function is not blamed for what its rows are."""
    with pytest.raises(BadRows, match=words):
        sampled(kind, held, mean_age)


def test_lists_in_cells_of_a_frame_are_not_written_to_unseen():
    """A copy of a frame by pandas itself shares what its cells hold."""
    people = hs.populations.PublicTable(pd.DataFrame({"x": [[n % 7] for n in range(400)]}))

    def remember(rows):
        for each in rows["x"]:
            each.append(0)
        return sum(each[0] for each in rows["x"]) / len(rows)

    with pytest.raises(BadFunction, match="changes the rows"):
        hs.sample_sensitivity(remember, people, rows=12, gamma=0.3, workers=1)


@pytest.mark.parametrize("held", FRAMES)
@pytest.mark.parametrize("kind", [Person, Slots])
def test_the_digest_of_a_table_of_objects_is_that_of_what_they_hold(kind, held):
    """Where an object lies is no part of it."""
    made = FRAMES[held][0]
    ages = np.random.default_rng(5).random(50).tolist()
    one, two, other = (
        hs.populations.PublicTable(made([kind(age) for age in each]))
        for each in (ages, ages, [*ages[1:], 0.5])
    )
    assert one.describe() == two.describe()
    assert one.describe()["sha256"] != other.describe()["sha256"]


ODD = {
    "large arrays": [np.arange(5000.0), np.where(np.arange(5000) == 2000, 7, np.arange(5000.0))],
    "small differences": [np.array([0.1234567891]), np.array([0.1234567892])],
    "arrays in dicts": [{"v": np.zeros(5000)}, {"v": np.eye(1, 5000, 2000)[0]}],
    "nothing and a word": [None, "None"],
    "bytes and a text": [b"a", "b'a'"],
    "a day and a text": [datetime.date(2020, 1, 1), "2020-01-01"],
    "large integers": [2**53, 2**53 + 1],
    "nested otherwise": [([1, 2], [3]), ([1], [2, 3])],
    "a list and its text": [[1.0], "[1.0]"],
    "another order of keys": [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
    "another series": [pd.Series(np.zeros(5000)), pd.Series(np.eye(1, 5000, 2000)[0])],
}


HELD = {
    "list": lambda cells: [(each,) for each in cells],
    "pandas": lambda cells: pd.DataFrame({"p": pd.Series([*cells, None], dtype=object)}),
    "polars": FRAMES["polars"][0],
}


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", ODD)
def test_the_digest_of_a_table_tells_all_of_a_cell(name, held):
    """What is printed of a cell may be a part of it, or the same for another one."""
    one, two, again = (
        hs.populations.PublicTable(HELD[held](["a", each])).describe()["sha256"]
        for each in (*ODD[name], copy.deepcopy(ODD[name][0]))
    )
    assert one == again
    assert one != two


class Loud:
    """An object that says its value when it is read as a text."""

    def __str__(self):
        print("told 41")
        return "41"


class Fails:
    """A column of a class whose own code says a cell, and fails with it."""

    def __arrow_array__(self, type=None):  # noqa: A002
        print("told 41")
        raise ValueError("41")


class Broken(Fails, pd.arrays.IntegerArray):
    pass


class Unasked(Fails, pd.arrays.PeriodArray):
    pass


def test_objects_in_a_queried_table_are_read_in_silence(capfd):
    """What their own code says, and the errors that it raises, may hold private values."""
    frame = pd.DataFrame({"a": pd.Series([Loud(), Loud()], dtype=object)})
    assert hs.table(frame).columns == {"a": "string"}
    days = pd.period_range("2020-01-01", periods=2).array
    unasked = pd.DataFrame({"p": Unasked(days._ndarray, dtype=days.dtype)})
    assert hs.table(unasked).columns == {"p": "other"}
    broken = pd.DataFrame({"b": Broken(np.array([41, 42]), np.zeros(2, dtype=bool))})
    with pytest.raises(ParameterError, match="column 'b' of the frame") as refused:
        hs.table(broken)
    assert "41" not in str(refused.value)
    assert refused.value.__context__ is None
    assert "told" not in "".join(capfd.readouterr())
