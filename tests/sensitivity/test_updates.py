"""Updates: a function that says how one replaced row changes the answer spares evaluations."""

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.errors import BadFunction, ParameterError

ROWS = 30
UNIFORM = hs.populations.Uniform(low=0, high=1)
PUBLIC = hs.populations.PublicTable(
    pd.DataFrame({"cost": np.random.default_rng(0).exponential(size=9000), "age": 40}),
    bounds={"cost": (0, 100)},
)
PEOPLE = hs.populations.Users(hs.populations.Exponential(rate=1), sizes={1: 0.5, 2: 0.3, 9: 0.2})
ASKED = []


def mean(rows):
    return float(np.mean(rows))


def update_mean(answer, rows, places, new):
    return answer + (new - rows[places]) / len(rows)


def moments(rows):
    return np.array([[rows.mean(), (rows**2).mean()]])


def update_moments(answer, rows, places, new):
    moved = [new - rows[places], new**2 - rows[places] ** 2]
    return answer + np.stack(moved, axis=-1)[:, None, :] / len(rows)


def cost(rows):
    return float(rows["cost"].sum())


def update_cost(answer, rows, places, new):
    return answer + new["cost"].to_numpy() - rows["cost"].to_numpy()[places]


def total_per_person(rows):
    return float(np.minimum(np.bincount(rows[:, 0].astype(int), rows[:, 1]), 5).mean())


def update_total(answer, rows, places, new):
    before, after = (
        np.minimum(np.bincount(table[:, 0].astype(int), table[:, 1]), 5) for table in (rows, new)
    )
    return answer + (after - before[places]) / len(before)


def largest_of_list(rows):
    return float(max(row["x"] for row in rows))


def update_largest(answer, rows, places, new):
    held = [row["x"] for row in rows]
    return np.array(
        [
            max([*held[:place], row["x"], *held[place + 1 :]])
            for place, row in zip(places, new, strict=True)
        ]
    )


def dicts(rng, count):
    return [{"x": float(each)} for each in rng.random(count)]


EVERY_REACH = (
    {},
    {"symmetric": True},
    {"position": "worst"},
    {"protect": "everyone"},
    {"protect": "simultaneous"},
    {"protect": "table", "values": [0.0, 0.3, 1.0]},
)


def sample(f, population, **options):
    return hs.sample_sensitivity(
        f, population, rows=ROWS, pairs=40, calibration="marginal", **options
    )


@pytest.mark.parametrize("reach", EVERY_REACH, ids=str)
def test_an_update_gives_the_movements_of_plain_evaluation(reach):
    """For pairs, for tables with many neighbours, in whatever order they are promised."""
    options = {**reach, "pairs": 60} if reach.get("protect") == "everyone" else reach
    for f, update in ((mean, update_mean), (moments, update_moments)):
        shared = {"rows": ROWS, "pairs": 20, "calibration": "marginal", **options}
        plain = hs.sample_sensitivity(f, UNIFORM, **shared)
        fast = hs.sample_sensitivity(f, UNIFORM, update=update, **shared)
        assert fast.draws == pytest.approx(plain.draws, rel=1e-9)
        assert fast.calls < plain.calls


@pytest.mark.slow_cases("pairs of frames")
@pytest.mark.parametrize(
    ("f", "update", "population", "options"),
    [
        pytest.param(
            cost, update_cost, PUBLIC, {"protect": "simultaneous"}, marks=pytest.mark.slow
        ),
        (cost, update_cost, PUBLIC, {}),
        (total_per_person, update_total, PEOPLE, {"user": 0, "protect": "simultaneous"}),
        (total_per_person, update_total, PEOPLE, {"user": 0, "position": "worst"}),
        (total_per_person, update_total, PEOPLE, {"user": 0}),
        (largest_of_list, update_largest, hs.populations.Simulator(dicts), {"position": "worst"}),
    ],
    ids=["frames", "pairs of frames", "people", "worst place of people", "one person", "lists"],
)
def test_an_update_is_given_what_the_population_yields(f, update, population, options):
    """Frames, lists, and all rows of people, numbered from 0 as the new ones come."""
    plain = sample(f, population, **options)
    fast = sample(f, population, update=update, **options)
    assert fast.draws == pytest.approx(plain.draws, rel=1e-9)


def test_an_update_on_a_table_given_the_rest_sees_the_pair_s_own_rows():
    """Both rows that take the place come from the pair, and none from the rest."""
    table = np.random.default_rng(1).random(200)
    given = hs.populations.PublicTable(table, promise="given-the-rest")
    fast = sample(mean, given, update=update_mean)
    assert fast.draws == pytest.approx(sample(mean, given).draws, rel=1e-9)


def noted_mean(rows):
    ASKED.append(len(rows))
    return float(rows.mean())


@pytest.mark.slow
def test_a_table_with_many_neighbours_is_evaluated_thrice_and_not_once_for_each():
    """All but a few checks: the table, the neighbour that moves furthest, and a random one."""
    ASKED.clear()
    s = hs.sample_sensitivity(
        noted_mean, UNIFORM, rows=200, pairs=40, position="worst", update=update_mean, workers=1
    )
    assert len(ASKED) < 6 * s.pairs  # and not 201
    assert s.calls == 2 * s.pairs


def test_no_movement_is_smaller_than_the_function_s_own_by_what_the_update_rounds_off():
    """An update that is off by a little enlarges every movement by the largest gap seen."""

    def rough(answer, rows, places, new):
        return update_mean(answer, rows, places, new) * (1 - 1e-9)

    for reach in ({"position": "worst"}, {}):
        plain = sample(mean, UNIFORM, **reach)
        fast = sample(mean, UNIFORM, update=rough, **reach)
        assert (fast.draws >= plain.draws).all()
        assert fast.value == pytest.approx(plain.value, rel=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("reach", [{}, {"position": "worst"}, {"protect": "simultaneous"}])
def test_an_update_that_tells_of_another_movement_is_refused(share, reach):
    """None at all, half of it, or twice as much."""

    def wrong(answer, rows, places, new):
        return answer + share * (new - rows[places]) / len(rows)

    with pytest.raises(BadFunction, match="update gives another answer"):
        sample(mean, UNIFORM, update=wrong, **reach)


def test_an_update_that_is_wrong_at_a_few_places_only_is_found_by_the_random_neighbours():
    """A tenth of the places stands still, and so never moves furthest: 40 tables are enough."""

    def still(answer, rows, places, new):
        moved = np.where(places < ROWS // 10, 0.0, new - rows[places])
        return answer + moved / len(rows)

    with pytest.raises(BadFunction, match="update gives another answer"):
        sample(mean, UNIFORM, update=still, position="worst")


def test_an_update_that_exaggerates_at_one_place_is_found_where_it_moves_furthest():
    """That neighbour is evaluated in every table, however rarely chance would choose it."""

    def exaggerated(answer, rows, places, new):
        return update_mean(answer, rows, places, new) + (places == 7)

    with pytest.raises(BadFunction, match="update gives another answer"):
        hs.sample_sensitivity(
            mean, UNIFORM, rows=2000, pairs=19, position="worst", update=exaggerated, workers=1
        )


@pytest.mark.parametrize(
    ("update", "match"),
    [
        (lambda a, rows, places, new: a, "one answer for each place"),
        (lambda a, rows, places, new: np.full((len(places), 2), a), "one answer for each place"),
        (lambda a, rows, places, new: np.full(len(places), np.nan), "NaN or infinity"),
        (lambda a, rows, places, new: rows.sort(), "changes the rows"),
        (lambda a, rows, places, new: new.sort(), "changes the rows"),
        (lambda a, rows, places, new: 1 / 0, "ZeroDivisionError"),
    ],
    ids=["one answer", "wrong shape", "no number", "changes rows", "changes new rows", "raises"],
)
def test_an_update_that_gives_no_answers_is_refused_in_words(update, match):
    """A wrong shape, no finite numbers, an exception, and rows that are changed."""
    with pytest.raises(BadFunction, match=match):
        sample(mean, UNIFORM, update=update, position="worst")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"update": 3}, "update must be a function"),
        ({"neighbours": "add-remove"}, "one replaced row"),
        ({"distance": 2}, "one replaced row"),
        ({"batch": True}, "batch=True"),
    ],
    ids=["no function", "added rows", "several rows", "stacks"],
)
def test_an_update_without_a_single_replaced_row_is_refused(options, match):
    """It says how one replaced row changes one answer, and nothing else."""
    with pytest.raises(ParameterError, match=match):
        sample(mean, UNIFORM, **{"update": update_mean, **options})
    with pytest.raises(ParameterError, match="one block"):
        sample(hs.Blockwise(mean, rows=10), UNIFORM, update=update_mean)


def test_a_certificate_says_that_an_update_was_declared_and_is_verified_with_it():
    """Bit for bit with the update; verification asks for it there, and there alone."""
    s = sample(mean, UNIFORM, update=update_mean, position="worst")
    released = hs.release(mean, np.linspace(0, 1, ROWS), mechanism=hs.Laplace(s, epsilon=1))
    assert "as the caller's update of it says" in released.certificate.explain()
    again = hs.Certificate.from_json(released.certificate.to_json())
    assert hs.verify(again, mean, update=update_mean).agreement == "bits"
    with pytest.raises(ParameterError, match=r"give it, update="):
        hs.verify(again, mean)
    plain = hs.Laplace(sample(mean, UNIFORM), epsilon=1)
    certificate = hs.release(mean, np.linspace(0, 1, ROWS), mechanism=plain).certificate
    assert "update" not in certificate.explain()
    with pytest.raises(ParameterError, match="leave update out"):
        hs.verify(certificate, mean, update=update_mean)


def test_workers_find_the_movements_that_this_process_finds():
    """The update is sent along with the function."""
    one, two = (
        sample(mean, UNIFORM, update=update_mean, position="worst", workers=workers)
        for workers in (1, 2)
    )
    assert (one.draws == two.draws).all()


def test_what_was_sampled_with_an_update_and_what_was_not_are_no_alternatives():
    """Of several populations the largest is kept among those that were sampled alike."""
    with pytest.raises(ParameterError, match="update"):
        hs.largest_sensitivity([sample(mean, UNIFORM), sample(mean, UNIFORM, update=update_mean)])


def test_a_run_that_is_kept_is_that_of_its_update(tmp_path):
    """The same update finds its trials again; another one has a run of its own."""

    def rough(answer, rows, places, new):
        return update_mean(answer, rows, places, new) * (1 - 1e-9)

    def runs_after(update):
        found = sample(mean, UNIFORM, update=update, position="worst", keep=tmp_path, workers=1)
        return found, len(hs.runs.list_runs(tmp_path))

    first, again, other = (runs_after(each) for each in (update_mean, update_mean, rough))
    assert [runs for _, runs in (first, again, other)] == [1, 1, 2]
    assert (again[0].draws == first[0].draws).all()
    assert (other[0].draws > first[0].draws).all()


def test_an_update_that_cannot_be_called_is_told_as_the_update():
    """The function itself raised nothing."""
    population = hs.populations.Uniform(low=0, high=1)
    with pytest.raises(BadFunction, match="asked for an update, the function raised TypeError"):
        hs.sample_sensitivity(np.mean, population, rows=9, pairs=40, update=lambda rows: rows)


@pytest.mark.parametrize("protect", ["record", "simultaneous"])
def test_an_update_with_its_arguments_in_another_order_is_told_the_order(protect):
    """The error of its body alone said nothing of that."""

    def other(rows, places, new, answer):
        return answer + (new - rows[places]) / len(rows)

    population = hs.populations.Uniform(low=0, high=1)
    with pytest.raises(BadFunction, match=r"called as update\(answer, rows, places, new_rows\)"):
        hs.sample_sensitivity(np.mean, population, rows=200, protect=protect, update=other)
