"""What was spent on people is not forgotten when another budget counts for them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from tests.server.conftest import make_folder

from hushed import Guarantee, privacy_loss
from hushed.errors import LedgerUnavailable, Refusal
from hushed.ledger import Ledger
from hushed.server._adding import add_dataset, confirm_dataset
from hushed.server._alone import serving_alone
from hushed.server._opening import open_own
from hushed.server._setup import check_server, read_trail

LIMIT = Guarantee(epsilon=3.0, neighbours="add-remove", unit="user")


def charge(folder, budget, epsilon, **more):
    with open_own(folder)[1] as ledger:
        ledger.charge(
            budget, Guarantee(epsilon=epsilon, neighbours="add-remove", unit="user", **more)
        )


def left(folder, budget):
    with open_own(folder)[1] as ledger:
        return ledger.balance(budget).epsilon_left


def name_budget(folder, old, new):
    file = folder / "hushed.toml"
    file.write_text(file.read_text().replace(f'budget = "{old}"', f'budget = "{new}"'))


add_twice = partial(add_dataset, second_budget=True)


@pytest.fixture
def folder(tmp_path):
    """A data set of which 0.3 in two charges is spent, and a second one of the same table."""
    make_folder(tmp_path)
    place = tmp_path / "stats"
    told = {"source": str(tmp_path / "stays.csv"), "user": "patient"}
    assert "charges there what more has spent" in add_twice(place, "more", told, LIMIT)
    for epsilon in (0.1, 0.2):
        charge(place, "stays", epsilon)
    charge(place, "more", 1.0)
    return place


def test_another_budget_is_charged_with_what_was_spent(folder):
    name_budget(folder, "stays", "more")
    found = confirm_dataset(folder, "stays")
    assert found.carried == (
        "epsilon 0.3, delta 0 was spent of budget 'stays', and is charged to 'more', because the "
        "people are the same",
    )
    assert left(folder, "more") == 1.7
    assert confirm_dataset(folder, "stays").carried == ()
    assert left(folder, "more") == 1.7
    assert not check_server(folder).problems


def test_what_does_not_fit_is_refused_and_nothing_is_confirmed(folder):
    name_budget(folder, "more", "stays")
    with pytest.raises(
        Refusal, match=r"epsilon 1, delta 0 was spent of budget 'more', and does not"
    ):
        confirm_dataset(folder, "more")
    assert left(folder, "stays") == 0.7
    assert any("its description was changed" in each for each in check_server(folder).problems)
    assert confirm_dataset(folder, "more", other_people=True).carried == ()
    assert left(folder, "stays") == 0.7
    told = read_trail(folder, None, 1)[0][0]
    assert told["action"] == "confirmed a data set of other people"


def test_gamma_that_the_new_budget_lacks_is_refused(folder, tmp_path):
    told = {"source": str(tmp_path / "stays.csv"), "user": "patient"}
    add_twice(
        folder, "third", told, Guarantee(epsilon=1, gamma=0.1, neighbours="add-remove", unit="user")
    )
    charge(folder, "third", 0.1, gamma=0.05)
    name_budget(folder, "third", "more")
    with pytest.raises(Refusal, match=r"gamma 0\.05 was spent of budget 'third'"):
        confirm_dataset(folder, "third")


def test_a_server_that_runs_goes_on_with_the_old_budget_and_is_stopped_first(folder):
    name_budget(folder, "stays", "more")
    refused = pytest.raises(LedgerUnavailable, match="stop it first")
    with open_own(folder)[1] as ledger, serving_alone(ledger), refused:
        confirm_dataset(folder, "stays")
    assert left(folder, "more") == 2.0


def test_a_table_that_was_taken_out_and_comes_again_brings_what_was_spent(folder, tmp_path):
    file = folder / "hushed.toml"
    text = file.read_text()
    file.write_text(text[: text.index("[dataset.more]")])
    told = {"source": str(tmp_path / "stays.csv"), "user": "patient"}
    assert "epsilon 1, delta 0 was spent of budget 'more'" in add_twice(folder, "new", told, LIMIT)
    assert left(folder, "new") == 2.0


def take_out(folder, name):
    """Take the last data set out of the settings."""
    file = folder / "hushed.toml"
    text = file.read_text()
    file.write_text(text[: text.index(f"[dataset.{name}]")])


@pytest.fixture
def replaced(folder, tmp_path):
    """Data set "more" is gone, and its file was replaced since it was confirmed."""
    take_out(folder, "more")
    rows = tmp_path / "stays.csv"
    new = tmp_path / "tonight.csv"
    new.write_text(f"{rows.read_text()}P100,A,3\n")
    new.rename(rows)
    column = {"cost": {"kind": "float"}}  # and it is described in other words
    return {"source": str(rows), "user": "patient", "column": column}


def test_a_file_that_was_replaced_meanwhile_has_the_same_people(folder, replaced):
    assert "epsilon 1, delta 0 was spent of budget 'more'" in add_twice(
        folder, "new", replaced, LIMIT
    )
    assert left(folder, "new") == 2.0


def budgets(folder):
    with open_own(folder)[1] as ledger:
        return {each.name: ledger.balance(each.name).entries for each in ledger.budgets()}


def test_an_add_that_is_refused_opens_no_budget_so_that_its_own_advice_can_be_taken(
    folder, replaced
):
    before = budgets(folder)
    with pytest.raises(Refusal, match="take a larger budget"):
        add_twice(folder, "new", replaced, replace(LIMIT, epsilon=0.5))
    rows = {key: each for key, each in replaced.items() if key != "user"}
    with pytest.raises(Refusal, match="protects users: it cannot be charged to 'new'"):
        add_twice(folder, "new", rows, replace(LIMIT, unit="row"))
    assert budgets(folder) == before
    assert "charged to 'new'" in add_twice(folder, "new", replaced, LIMIT)
    assert left(folder, "new") == 2.0


def test_what_does_not_fit_together_is_refused_before_any_of_it_is_charged(folder, replaced):
    charge(folder, "stays", 0.4)
    file = folder / "hushed.toml"
    file.write_text(file.read_text().partition("[dataset.")[0])  # 0.7 and 1 were spent
    before = budgets(folder)
    with pytest.raises(Refusal, match="'stays', and together do not fit into budget 'new'"):
        add_twice(folder, "new", replaced, replace(LIMIT, epsilon=1.5))
    assert budgets(folder) == before
    described = "source = '../stays.csv'\nuser = 'patient'\nbudget = 'other'\n"
    file.write_text(f"{file.read_text()}[dataset.other]\n{described}")
    with open_own(folder)[1] as ledger:
        ledger.open_budget("other", replace(LIMIT, epsilon=1.5))
    before = budgets(folder)
    with pytest.raises(Refusal, match="together do not fit into budget 'other'"):
        confirm_dataset(folder, "other")
    assert budgets(folder) == before


def move_rows(folder, tmp_path, name, **more):
    """Let a data set read another file, and confirm it."""
    (tmp_path / name).write_text((tmp_path / "stays.csv").read_text() + "P101,A,3\n")
    file = folder / "hushed.toml"
    head, _, own = file.read_text().rpartition("[dataset.more]")
    file.write_text(f"{head}[dataset.more]{own.replace('stays.csv', name)}")
    return confirm_dataset(folder, "more", **more)


def test_rows_that_a_data_set_had_before_are_known_when_they_come_again(folder, tmp_path):
    """Its budget was charged for them, before it got those of the next month."""
    move_rows(folder, tmp_path, "december.csv")
    take_out(folder, "more")
    column = {"cost": {"kind": "float"}}
    told = {"source": str(tmp_path / "stays.csv"), "user": "patient", "column": column}
    assert "was spent of budget 'more'" in add_twice(folder, "new", told, LIMIT)
    assert left(folder, "new") == 2.0


def test_people_are_known_whose_data_set_has_the_rows_of_others_by_now(folder, tmp_path):
    """The name has another budget; neither it nor who comes again is charged with the other's."""
    with open_own(folder)[1] as ledger:
        ledger.open_budget("second", LIMIT)
    name_budget(folder, "more", "second")
    assert move_rows(folder, tmp_path, "others.csv", other_people=True).carried == ()
    charge(folder, "second", 0.5)
    assert confirm_dataset(folder, "more").carried == ()
    column = {"cost": {"kind": "float"}}
    told = {"source": str(tmp_path / "stays.csv"), "user": "patient", "column": column}
    assert "was spent of budget 'more'" in add_twice(folder, "new", told, LIMIT)
    assert (left(folder, "new"), left(folder, "second")) == (2.0, 2.5)
    assert not check_server(folder).problems


def test_whoever_adds_rows_of_other_people_says_so(folder, replaced):
    assert "was spent" not in add_twice(folder, "new", replaced, LIMIT, other_people=True)
    assert left(folder, "new") == 3.0
    told = read_trail(folder, None, 1)[0][0]
    assert told["action"] == "confirmed a data set of other people"


@pytest.mark.slow
def test_a_table_of_a_database_is_known_under_any_description_and_login(folder, source):
    told = {"source": source, "table": "stays", "user": "patient"}
    add_twice(folder, "there", told, LIMIT)
    charge(folder, "there", 0.5)
    take_out(folder, "there")
    other = told | {"source": f"{source}?application_name=other", "max_rows_per_user": 3}
    assert "epsilon 0.5, delta 0 was spent of budget 'there'" in add_twice(
        folder, "new", other, LIMIT
    )
    assert left(folder, "new") == 2.5


def test_a_name_that_is_added_again_brings_what_was_spent_of_another_budget(folder, tmp_path):
    name_budget(folder, "stays", "more")
    confirm_dataset(folder, "stays")
    file = folder / "hushed.toml"
    text = file.read_text()
    file.write_text(text[: text.index("[dataset.")])
    told = {"source": str(tmp_path / "stays.csv"), "user": "patient"}
    limit = Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")
    with pytest.raises(Refusal, match="was spent of budget 'more'"):
        add_twice(folder, "stays", told, limit)
    with Ledger(f"sqlite:///{folder}/hushed.db", create=False) as ledger:
        assert ledger.balance("stays").epsilon_left == 0.7


def take_all_out(folder):
    """Take all data sets out of the file."""
    file = folder / "hushed.toml"
    text = file.read_text()
    file.write_text(text[: text.index("[dataset.")])


def test_a_table_that_comes_under_one_name_after_another_brings_each_charge_once(folder, tmp_path):
    """What the second had was charged with the first one's, which is no charge of the third."""
    told = {"source": str(tmp_path / "stays.csv"), "user": "patient"}
    limit = Guarantee(epsilon=9.0, neighbours="add-remove", unit="user")
    for name in ("one", "two", "three"):
        take_all_out(folder)
        add_twice(folder, name, told, limit)
        assert left(folder, name) == 7.7  # 0.3 of stays and 1 of more
        confirm_dataset(folder, name)
        assert left(folder, name) == 7.7
    charge(folder, "two", 0.7)  # spent elsewhere since
    confirm_dataset(folder, "three")
    assert left(folder, "three") == 5.7  # all of two again: 2.0


def test_no_more_is_charged_than_the_old_limit_which_holds_for_all_of_it(folder, tmp_path):
    told = {"source": str(tmp_path / "stays.csv"), "user": "patient"}
    limit = Guarantee(epsilon=3.0, delta=1e-5, neighbours="add-remove", unit="user")
    add_twice(folder, "noisy", told, limit)
    add_twice(folder, "large", told, replace(limit, epsilon=4.0, delta=1e-4))
    loss = privacy_loss.gaussian(0.05)
    promise = replace(limit, epsilon=loss.epsilon(1e-7), delta=1e-7)
    with open_own(folder)[1] as ledger:
        for _ in range(60):  # 12.9 one by one
            ledger.charge("noisy", promise, loss=loss)
    name_budget(folder, "noisy", "large")
    assert "epsilon 3, delta 1e-05 was spent" in confirm_dataset(folder, "noisy").carried[0]


def test_a_budget_that_was_retired_has_nothing_to_charge(folder, tmp_path):
    """Not even where it protects rows, and the new one people: for that it was retired."""
    told = {"source": str(tmp_path / "stays.csv")}
    add_twice(folder, "rows", told, replace(LIMIT, unit="row"))
    with open_own(folder)[1] as ledger:
        ledger.retire_budget("rows", "the column of the people was forgotten")
    file = folder / "hushed.toml"
    text = file.read_text()
    file.write_text(text[: text.index("[dataset.rows]")])
    assert "was spent" not in add_twice(folder, "people", told | {"user": "patient"}, LIMIT)
    assert left(folder, "people") == 3.0


def test_a_table_whose_rows_were_spent_on_is_added_by_people_where_they_are_others(
    folder, tmp_path
):
    told = {"source": str(tmp_path / "stays.csv")}
    add_twice(folder, "rows", told, replace(LIMIT, unit="row"))
    with open_own(folder)[1] as ledger:
        ledger.charge("rows", Guarantee(epsilon=0.5, neighbours="add-remove"))
    file = folder / "hushed.toml"
    text = file.read_text()
    file.write_text(text[: text.index("[dataset.rows]")])
    told |= {"user": "patient"}
    with pytest.raises(Refusal, match=r"protects rows: .* other people, give --other-people"):
        add_twice(folder, "people", told, LIMIT)
    add_twice(folder, "people", told, LIMIT, other_people=True)
    assert left(folder, "people") == 3.0
    assert read_trail(folder, None, 1)[0][0]["action"] == "confirmed a data set of other people"


def name_people(folder, old, new):
    file = folder / "hushed.toml"
    file.write_text(file.read_text().replace(f'user = "{old}"', f'user = "{new}"'))


def test_what_was_spent_on_other_units_is_not_that_of_people(folder):
    """A budget that protected each of somebody's many names is no budget of this person."""
    name_people(folder, "patient", "ward")
    with pytest.raises(Refusal, match="charged while each 'patient' is protected") as refused:
        confirm_dataset(folder, "stays")
    assert "this would be each 'ward'" in str(refused.value)
    assert "the same people, give --same-people" in str(refused.value)
    with pytest.raises(Refusal, match="charged while each 'patient'"):  # says nothing of people
        confirm_dataset(folder, "stays", accept_change=True)
    name_people(folder, "ward", "patient")
    assert confirm_dataset(folder, "stays").problem
    name_people(folder, "patient", "ward")  # a column that has another name by now
    assert confirm_dataset(folder, "stays", same_people=True).budget == "stays"
    assert confirm_dataset(folder, "stays").carried == ()
    assert left(folder, "stays") == 0.7


def test_nor_is_it_carried_to_people_under_another_name(folder, tmp_path):
    take_out(folder, "more")
    told = {"source": str(tmp_path / "stays.csv"), "user": "ward"}
    with pytest.raises(Refusal, match="'more' was charged while each 'patient' is protected"):
        add_dataset(folder, "again", told, LIMIT, second_budget=True)
    add_dataset(folder, "again", told, LIMIT, other_people=True, second_budget=True)
    assert left(folder, "again") == 3.0


def test_what_was_spent_is_carried_to_the_same_people_in_another_column(folder, tmp_path):
    take_out(folder, "more")
    told = {"source": str(tmp_path / "stays.csv"), "user": "ward"}
    add_dataset(folder, "again", told, LIMIT, same_people=True, second_budget=True)
    assert left(folder, "again") == 2.0


def test_of_a_budget_that_nobody_has_charged_any_column_can_be_taken(tmp_path):
    make_folder(tmp_path)
    name_people(tmp_path / "stats", "patient", "ward")
    with (
        open_own(tmp_path / "stats")[1] as ledger,
        serving_alone(ledger),  # it would go on charging for the former one
        pytest.raises(LedgerUnavailable, match="stop it first"),
    ):
        confirm_dataset(tmp_path / "stats", "stays")
    assert confirm_dataset(tmp_path / "stats", "stays").budget == "stays"


def test_one_budget_is_not_for_two_kinds_of_people_of_a_table(tmp_path):
    make_folder(tmp_path)
    folder, told = tmp_path / "stats", {"source": str(tmp_path / "stays.csv"), "user": "ward"}
    add_dataset(folder, "more", told, LIMIT, second_budget=True)
    name_budget(folder, "more", "stays")
    with pytest.raises(Refusal, match="that of another data set of this table, where each"):
        confirm_dataset(folder, "more")
    name_people(folder, "ward", "patient")
    assert confirm_dataset(folder, "more").budget == "stays"
