"""What hangs on a table beside its rows reaches no function, or stands on the sampled side too."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import BadRows
from hushed.populations import Simulator

_ROWS = 20
_NUMBERS = np.random.default_rng(3).random(_ROWS)
_KNOWN = hs.proven_sensitivity(1e-6, argument="a test")


def _released(function, private, simulate=None, bounds=None, **settings):
    """Release with next to no noise, of a sampled sensitivity if rows can be simulated."""
    if simulate is None:
        return hs.release(function, private, hs.Laplace(_KNOWN, epsilon=1e3)).value
    settings = {"rows": _ROWS, "pairs": 20} | settings
    sampled = hs.sample_sensitivity(function, Simulator(simulate, bounds=bounds), **settings)
    return hs.release(function, private, hs.Laplace(sampled, epsilon=1e6)).value


_ALIGNED = np.dtype([("a", "u1"), ("b", [("c", "u1"), ("d", "f8")], (2,))], align=True)


def test_bytes_between_fields_are_gone():
    """A structured array comes without gaps, in which another table's numbers may stand."""
    private = np.zeros(_ROWS, _ALIGNED)
    bare = np.frombuffer(private, "u1").reshape(_ROWS, -1).copy()
    bare[:, 1:8] = 7
    private = bare.view(_ALIGNED).ravel()
    private["b"]["d"] = 0.5

    def function(rows):
        held = np.frombuffer(rows.tobytes(), "u1")
        return [held.astype(float).sum(), len(held)]

    clean = np.zeros(_ROWS, np.dtype([("a", "u1"), ("b", [("c", "u1"), ("d", "f8")], (2,))]))
    clean["b"]["d"] = 0.5
    assert _released(function, private) == pytest.approx(function(clean), abs=1e-3)


def test_fields_come_alike_from_the_population():
    """The sampled tables have no gaps either, so that a function may look at the bytes."""

    def simulate(rng, count):
        drawn = np.zeros(count, _ALIGNED)
        drawn["b"]["d"] = rng.random((count, 2))
        return drawn

    def function(rows):
        return rows["b"]["d"].mean() + rows.dtype.itemsize

    private = simulate(np.random.default_rng(1), _ROWS)
    expected = private["b"]["d"].mean() + 1 + 2 * 9
    assert _released(function, private, simulate) == pytest.approx(expected, abs=1e-3)


def test_metadata_of_a_type_are_gone():
    """What was written into the type of an array is not seen by the function."""
    private = _NUMBERS.astype(np.dtype("f8", metadata={"note": "private"}))
    fields = np.zeros(_ROWS, [("a", np.dtype("f8", metadata={"note": "private"}))])
    fields["a"] = _NUMBERS
    assert _released(lambda rows: float(bool(rows.dtype.metadata)), private) < 0.5
    assert _released(lambda rows: float(bool(rows.dtype["a"].metadata)), fields) < 0.5


@pytest.mark.slow_cases("levels")
@pytest.mark.parametrize(
    "columns",
    [
        pd.RangeIndex(2),
        pd.CategoricalIndex(["a", "b"]),
        pd.Index(["a", "b"], dtype=object),
        pd.MultiIndex.from_product([["a", "unused", "b"], ["x"]])[[0, 2]],
    ],
    ids=["range", "categories", "objects", "levels"],
)
def test_columns_are_indexed_as_in_the_sample(columns):
    """A function that asks for the kind of index gets one answer for sampled and private rows."""

    def simulate(rng, count):
        return pd.DataFrame(rng.random((count, 2)), columns=columns)

    kinds = set()

    def function(frame):
        levels = getattr(frame.columns, "levels", [()])
        kinds.add((type(frame.columns), str(frame.columns.dtype), len(levels[0])))
        return frame.iloc[:, 0].mean()

    _released(function, simulate(np.random.default_rng(1), _ROWS), simulate, workers=1)
    assert len(kinds) == 1


@pytest.mark.slow_cases("name2")
@pytest.mark.parametrize("name", [1, 1.5, ("a", "b"), None])
def test_a_text_is_no_label_of_another_kind(name):
    """A column named by the text that stands for another kind of name is refused, uncharged."""

    def simulate(rng, count):
        frame = pd.DataFrame(rng.random((count, 1)))
        frame.columns = pd.Index([name], dtype=object, tupleize_cols=False)
        return frame

    private = pd.DataFrame({f"{name} ({type(name).__name__})": _NUMBERS})
    with pytest.raises(BadRows, match="another name"):
        _released(lambda frame: frame.iloc[:, 0].mean(), private, simulate)


@pytest.mark.slow
def test_bounds_name_such_a_text():
    """Bounds are given by the name itself."""
    name = "1 (int)"
    value = _released(
        lambda frame: frame[name].mean(),
        pd.DataFrame({name: _NUMBERS + 9}),
        lambda rng, count: pd.DataFrame({name: rng.random(count)}),
        bounds={name: (0, 1)},
    )
    assert value == pytest.approx(1.0, abs=1e-3)


def test_arrow_dictionaries_are_refused():
    """One row may come first and number the texts of all others anew: before the charge."""

    def simulate(rng, count):
        texts = pa.array(np.array(["a", "b", "c"])[rng.integers(3, size=count)].tolist())
        return pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(texts.dictionary_encode())})

    def function(frame):
        return float(frame["x"].array.__arrow_array__().combine_chunks().indices.to_numpy().mean())

    with pytest.raises(BadRows, match="CategoricalDtype"):
        hs.sample_sensitivity(function, Simulator(simulate), rows=_ROWS)


def _arrow(values):
    return pd.arrays.ArrowExtensionArray(pa.array(values, pa.float64()))


def _masked(values):
    numbers = np.array([np.nan if each is None else each for each in values])
    return pd.arrays.FloatingArray(numbers, np.array([each is None for each in values]))


@pytest.mark.slow
@pytest.mark.parametrize("made", [_arrow, _masked])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-np.inf, 0.0)])
def test_nan_of_nullable_columns_is_missing(made, bounds):
    """A NaN that pandas does not take for missing goes to the end where missing values go."""
    low, high = bounds
    sign, end = (1, low) if np.isfinite(low) else (-1, high)
    value = _released(
        lambda frame: frame["x"].to_numpy(dtype=float).mean(),
        pd.DataFrame({"x": made([np.nan, None, 9.0 * sign] + [0.5 * sign] * (_ROWS - 3))}),
        lambda rng, count: pd.DataFrame({"x": made((sign * rng.random(count)).tolist())}),
        bounds={"x": bounds},
    )
    outside = 1.0 if sign > 0 else -9.0
    expected = (2 * end + outside + 0.5 * sign * (_ROWS - 3)) / _ROWS
    assert value == pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("made", [_arrow, _masked])
def test_missing_values_stay_where_the_population_has_some(made):
    """Where public rows lack values, private ones may, and NaN stays what it is."""
    public = hs.populations.PublicTable(
        pd.DataFrame({"x": made([None, *np.linspace(0, 1, 9_999)])}), bounds={"x": (0, 1)}
    )

    def function(frame):
        return frame["x"].isna().mean() + frame["x"].fillna(0.0).to_numpy(dtype=float).mean()

    sampled = hs.sample_sensitivity(function, public, rows=_ROWS)
    private = pd.DataFrame({"x": made([None, 9.0] + [0.5] * (_ROWS - 2))})
    released = hs.release(function, private, hs.Laplace(sampled, epsilon=1e6))
    assert released.value == pytest.approx((1 + 1 + 0.5 * (_ROWS - 2)) / _ROWS, abs=1e-3)


def test_rows_are_objects_of_their_own():
    """That two rows or cells are one object in the caller's table is not seen by the function."""
    row = [0.5]

    def function(rows):
        return len({id(each) for each in rows})

    cells = np.empty(_ROWS, dtype=object)
    for place in range(_ROWS):
        cells[place] = row
    assert _released(function, [row] * _ROWS) == pytest.approx(_ROWS, abs=0.1)
    assert _released(function, cells) == pytest.approx(_ROWS, abs=0.1)
    frame = pd.DataFrame({"x": cells})
    assert _released(lambda held: function(held["x"]), frame) == pytest.approx(_ROWS, abs=0.1)


@pytest.mark.parametrize("kind", ["str", "string[pyarrow]", "double[pyarrow]"])
def test_arrow_chunks_are_joined(kind):
    """So it is with a column of pandas; texts are in Arrow's memory by default."""
    whole = pd.DataFrame({"x": pd.Series(_NUMBERS).astype(kind)})
    private = pd.concat([whole[:7], whole[7:]], ignore_index=True)

    def count(frame):
        return float(pa.chunked_array(frame["x"]).num_chunks)

    assert count(private) > 1
    assert _released(count, private) == pytest.approx(1, abs=0.1)


def test_polars_chunks_are_joined():
    """Of how many pieces a frame was put together is not seen by the function."""
    private = pl.concat([pl.DataFrame({"x": _NUMBERS[i : i + 5]}) for i in (0, 5, 10, 15)])
    private = pl.concat([private[:7], private[7:]], rechunk=False)
    assert private.n_chunks() > 1
    assert _released(lambda frame: frame.n_chunks(), private) == pytest.approx(1, abs=0.1)
