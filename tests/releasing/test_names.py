"""Names of a function's numbers: those of public answers, never those of the private rows."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.commands import ended

import hushed as hs
from hushed.errors import BadFunction, ParameterError

COLUMNS = ["dose", "age"]
PUBLIC = pd.DataFrame(np.random.default_rng(1).random((4000, 2)), columns=COLUMNS)
PRIVATE = pd.DataFrame(np.random.default_rng(2).random((40, 2)), columns=COLUMNS)
POPULATION = hs.populations.PublicTable(PUBLIC)
ARRAYS = hs.populations.PublicTable(PUBLIC.to_numpy())


def as_series(rows):
    return rows.mean()


def as_dict(rows):
    return {name: rows[name].mean() for name in rows.columns}


def sampled(f, population=POPULATION, **settings):
    return hs.sample_sensitivity(f, population, rows=40, gamma=0.3, symmetric=True, **settings)


def exact(f, data=PRIVATE, population=POPULATION):
    return hs.release(f, data, hs.Laplace(sampled(f, population), epsilon=1e9))


@pytest.mark.parametrize("f", [as_series, as_dict])
def test_numbers_keep_their_names(f):
    """With much epsilon each name has its column's mean, whatever the answer is held in."""
    r = exact(f)
    assert r.named == pytest.approx({name: PRIVATE[name].mean() for name in COLUMNS}, abs=1e-6)
    assert r.names == r.certificate.sampling.names == tuple(COLUMNS)
    assert r.value.shape == (2,)


def test_a_frame_stays_a_table():
    """One row of it may be one of several stacked answers; of Polars a row is told as a dict."""
    r = exact(lambda rows: rows.mean().to_frame().T)
    assert (r.named, r.value.shape) == ({}, (1, 2))
    stacked = sampled(lambda stack: pd.DataFrame(stack.mean(axis=1)), ARRAYS, batch=True)
    assert stacked.sampling.shape == (2,)
    r = exact(as_polars, pl.DataFrame(PRIVATE), hs.populations.PublicTable(pl.DataFrame(PUBLIC)))
    assert r.named == pytest.approx(dict(PRIVATE.mean()), abs=1e-6)


def as_polars(rows):
    return rows.mean().row(0, named=True)


def test_averages_over_blocks_keep_names():
    """Blockwise passes them on, of one block as of several."""
    f = hs.Blockwise(as_series, rows=10)
    r = exact(f)
    assert r.named == pytest.approx(dict(PRIVATE.mean()), abs=1e-6)
    assert hs.verify(r.certificate, f, population=POPULATION).reproduced


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param([2020, 2021], id="whole numbers"),
        pytest.param(["a", "a"], id="twice"),
        pytest.param([("a", "b"), ("a", "c")], id="of two levels"),
    ],
)
def test_labels_that_name_nothing(labels):
    """The numbers are an array, as they were."""

    def labelled(rows):
        index = pd.MultiIndex.from_tuples(labels) if isinstance(labels[0], tuple) else labels
        return pd.Series(rows.mean().to_numpy(), index=index)

    r = exact(labelled)
    assert (r.names, r.named) == ((), {})
    assert r.value == pytest.approx(PRIVATE.mean().to_numpy(), abs=1e-6)


def sorted_by_number(rows):
    return rows.mean().sort_values()


def of_varying_keys(rows):
    found = as_dict(rows)
    return found if rows["dose"].iloc[0] < 0.9 else dict(reversed(found.items()))


@pytest.mark.parametrize("f", [sorted_by_number, of_varying_keys])
def test_names_that_change_with_the_rows_are_refused_in_sampling(f):
    """By place, a number would mean another thing on another table."""
    with pytest.raises(BadFunction, match=r"other names.*'(age|dose)' and '(dose|age)' at one"):
        sampled(f)


def test_names_that_an_update_starts_from_are_compared():
    """Neighbours that are answered by an update have first answers, too."""

    def update(answer, rows, places, new_rows):
        return answer[None] + (new_rows.to_numpy() - rows.to_numpy()[places]) / len(rows)

    with pytest.raises(BadFunction, match="other names"):
        sampled(sorted_by_number, update=update)


def secretive(rows):
    """Name a column after a private cell where there is one like it."""
    found = rows.mean()
    return (
        found.rename({"age": f"secret {rows['age'].max()}"})
        if (rows > 0.99999).any(axis=None)
        else found
    )


BELOW = hs.populations.PublicTable(PUBLIC.clip(upper=0.9))


@pytest.mark.parametrize("f", [secretive, lambda rows: secretive(rows).to_dict()])
def test_names_of_private_rows_are_neither_told_nor_released(f, tmp_path):
    """Such an answer fails as one of another shape does: after the charge, and told once more."""
    data = PRIVATE.copy()
    data.loc[3, "age"] = 1.0
    mechanism = hs.Laplace(sampled(f, BELOW), epsilon=1.0)
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.open_budget("study", hs.Guarantee(epsilon=5, gamma=0.9))
        for _ in range(2):
            with pytest.raises(BadFunction, match=r"the shape .* the names that were") as failed:
                hs.release(f, data, mechanism, ledger, budget="study", key="once", outside="allow")
            assert "secret" not in str(failed.value)
            assert "1.0" not in str(failed.value)
        assert ledger.balance("study").spent.epsilon == 1.0


def test_a_function_with_other_names_is_not_the_sampled_one():
    """It is refused by the first sampled table, before anything is charged."""
    names = ["a", "b"]

    def named(rows):
        return dict(zip(names, rows.mean(), strict=True))

    mechanism = hs.Laplace(sampled(named), epsilon=1.0)
    names.reverse()
    with pytest.raises(BadFunction, match="sample it"):
        hs.release(named, PRIVATE, mechanism)


def test_names_of_a_nominal_population_are_not_told():
    """They may be those of the private rows."""
    s = hs.sample_sensitivity(
        as_series, hs.populations.PublicTable(PRIVATE), rows=40, gamma=0.9, data_dependent=True,
        symmetric=True,
    )  # fmt: skip
    assert s.sampling.names == tuple(COLUMNS)
    r = hs.release(as_series, PRIVATE, hs.Laplace(s, epsilon=1.0))
    assert (r.names, r.named) == ((), {})
    assert "dose" not in r.certificate.to_json()


def test_candidates_are_named():
    """A choice tells the name beside the place; k of them in their order."""
    far = PRIVATE.assign(age=1.0)
    one = hs.Exponential(sampled(as_series, norm="range"), epsilon=1e6)
    assert hs.release(as_series, far, one).chosen == ("age",)
    both = hs.TopK(2, sampled(as_series, norm="sup"), epsilon=1e6)
    r = hs.release(as_series, far, both)
    assert (r.chosen, r.named) == (("age", "dose"), {})
    gap = hs.NoisyMax(sampled(as_series, norm="sup"), epsilon=1e6)
    assert "chosen: age" in hs.release(as_series, far, gap)._card().text


def test_the_kept_answer_and_its_certificate_keep_names(tmp_path):
    """So the answer is told again with them, and the page of the certificate shows them."""
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.open_budget("study", hs.Guarantee(epsilon=5, gamma=0.9))
        mechanism = hs.Laplace(sampled(as_series), epsilon=1.0)
        first = hs.release(as_series, PRIVATE, mechanism, ledger, budget="study", key="k")
        again = hs.release(as_series, PRIVATE, mechanism, ledger, budget="study", key="k")
    assert again.named == first.named
    assert again.named.keys() == {*COLUMNS}
    told = hs.certify(first).explain()
    assert "the names are those of public answers" in told
    assert f"dose  {first.named['dose']:.6g}" in told
    assert "dose: " in first._card().text
    assert "age" in first._repr_html_()


@pytest.mark.parametrize("names", [["dose"], ["dose", "dose"], ["a", "b", "c"]])
def test_a_certificate_with_other_names_than_numbers_is_refused(names):
    """One name for each number."""
    told = json.loads(exact(as_series).certificate.to_json())
    told["sampling"]["names"] = names
    with pytest.raises(ParameterError, match=r"sampling\.names"):
        hs.Certificate.from_json(json.dumps(told))


def test_changed_names_do_not_verify():
    """Names follow from the function and the population."""
    told = json.loads(exact(as_series).certificate.to_json())
    told["sampling"]["names"] = ["age", "dose"]
    found = hs.verify(json.dumps(told), as_series, population=POPULATION)
    assert "names" in found.differences


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({1: 0.5}, "keys are not texts"),
        ({"a": [0.5, 1.0]}, "one number a name"),
        ({"\ud800": 0.5}, "keys are not texts"),
        ({}, "nothing"),
        ({"a": "b"}, "type str"),
    ],
)
def test_dicts_that_hold_no_numbers_by_name(answer, said):
    """They are refused on public rows."""
    with pytest.raises(BadFunction, match=said):
        sampled(lambda _: answer)


def test_blocks_read_by_place():
    """The numbers of a dict, and no names: those of several have to be asked for."""
    mechanism = hs.Blocks(low=0, high=1, epsilon=4.0)
    told = {"rows": 400, "trials": 1, "isolated": False}
    assert mechanism.simulate(lambda _: {"a": 0.5}, POPULATION, **told).failed == 0
    with pytest.raises(BadFunction, match="where one number is asked for"):
        mechanism.simulate(lambda _: {"a": 0.5, "b": 1.0}, POPULATION, **told)


def test_the_team_server_writes_names_beside_numbers():
    """A spreadsheet runs none of them."""
    pytest.importorskip("fastapi")
    from hushed.releasing._stored import write_release
    from hushed.server._pages._requests import _describe
    from hushed.server._seen import write_stored

    def named(rows):
        return {'=1+"1"': rows["dose"].mean(), "age": rows["age"].mean()}

    r = exact(named)
    text = write_release(r.value, r.certificate)
    head, first, second, last = write_stored(text).split("\n")
    assert (head, last) == ('"name","value"', "")
    assert first == f'"\'=1+""1""",{float(r.value[0])!r}'
    assert second == f'"age",{float(r.value[1])!r}'
    assert _describe(text).lines[0] == ("name", "value")
    assert _describe(text).lines[2] == ("age", f"{r.value[1]:.6g}")


@pytest.mark.slow
def test_the_command_line_names_numbers(tmp_path):
    """A line for each number; with --json under "named"."""
    (tmp_path / "f.py").write_text("def f(rows):\n    return rows.mean()\n")
    PUBLIC.to_csv(tmp_path / "public.csv", index=False)
    PRIVATE.to_csv(tmp_path / "private.csv", index=False)
    words = [
        "release", f"{tmp_path}/private.csv", f"{tmp_path}/f.py:f", "--population",
        f"{tmp_path}/public.csv", "--header", "--frame", "pandas", "--gamma", "0.3",
        "--epsilon", "1", "--symmetric",
    ]  # fmt: skip
    told = ended(*words, cwd=tmp_path)
    assert "\n  dose: " in told.stdout
    assert "\n  age: " in told.stdout
    assert json.loads(ended(*words, "--json", cwd=tmp_path).stdout)["named"].keys() == {*COLUMNS}
