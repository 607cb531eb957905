"""Settings at their ends, and what two requests of one microsecond, or two alike names, come to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from tests.server.conftest import QUERY, make_folder, open_team

from hushed.errors import ParameterError
from hushed.ledger._rows import run
from hushed.ledger._together import reading, writing
from hushed.server._config import (
    Column,
    DatasetSettings,
    Limits,
    ServerSettings,
    explain,
    parse_settings,
)
from hushed.server._life import _count_busy
from hushed.server._people import Caller, add_person, find_caller
from hushed.server._requests import count_open, readable_at
from hushed.server._setup import check_server, invite
from hushed.server._tokens import Scope
from hushed.server._worker import _limits

DATASET = 'source = "stays.csv"\nbudget = "stays"\nuser = "patient"\n'
SECTIONS = {
    "[limits]\n": Limits,
    "[server]\n": ServerSettings,
    f"[dataset.stays]\n{DATASET}": DatasetSettings,
    "[dataset.stays]\n" + DATASET + "[dataset.stays.column.cost]\n": Column,
}
SWITCHES = {"behind_proxy", "stewards_read_answers"}


def fields(model: type[BaseModel]) -> list[str]:
    """Name what is no switch, and was not given."""
    return [each for each in model.model_fields if f"{each} =" not in DATASET + str(SWITCHES)]


@pytest.mark.parametrize(
    ("section", "name"),
    [(section, name) for section, model in SECTIONS.items() for name in fields(model)],
)
@pytest.mark.parametrize("value", ["true", "false"])
def test_true_is_no_number(section: str, name: str, value: str) -> None:
    """``approve_above = true`` was 1, above which nothing is: nobody was asked."""
    if name in SWITCHES:
        parse_settings(f"{section}{name} = {value}\n")
        return
    with pytest.raises(ValidationError):
        parse_settings(f"{section}{name} = {value}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\nrun_second = 30\n", "did you mean 'run_seconds'"),
        ("[server]\napprove_above = 0.5\n", "belongs into [dataset.NAME]"),
        ("[server]\nanswer_grid = 5\n", "belongs into [limits] or into [dataset.NAME]"),
        (f"[dataset.stays]\n{DATASET}approve_abov = 0.5\n", "did you mean 'approve_above'?"),
        # the sections of its columns are of a data set without a source then
        ("[datasets.stays]\n[dataset.stays.column.cost]\nlow = 0\n", "did you mean 'dataset'"),
        (f'[dataset."stays 2025"]\n{DATASET}', "a name is 1 to 64 of A-Z a-z 0-9"),
    ],
)
def test_what_is_misspelt_is_told_before_what_is_missing_for_it(text: str, said: str) -> None:
    """To leave it out, as was said, would leave out a limit that was meant."""
    with pytest.raises(ValidationError) as refused:
        parse_settings(text)
    assert said in explain(refused.value)
    assert "^[" not in explain(refused.value)


def test_a_grid_below_a_microsecond_is_none() -> None:
    """What was charged was never answered: its grid was no time at all."""
    charged, done = "2026-12-01T10:00:00.000000+00:00", "2026-12-01T10:00:05.123456+00:00"
    for grid in (5e-324, 1e-7, 4e-7):
        parse_settings(f"[limits]\nanswer_grid = {grid}\n")
        assert readable_at(charged, done, grid) == readable_at(charged, done, 0.0) == done


@pytest.mark.parametrize(
    "url",
    ["https://", "https:///x", "https://x y", "https://x:port", "http://127.0.0.1.example.org"],
)
def test_a_public_address_names_a_host(url: str) -> None:
    """Whoever named none was answered, and one that begins as this computer was taken for it."""
    with pytest.raises(ValidationError):
        parse_settings(f'[server]\npublic_url = "{url}"\n')
    for good in ("https://x", "https://x:8443/path", "http://127.0.0.1:8642", "http://[::1]:8642"):
        parse_settings(f'[server]\npublic_url = "{good}"\n')


@pytest.mark.parametrize(("name", "least"), [("run_seconds", 1.0), ("check_seconds", 0.5)])
def test_no_time_is_too_short_to_look_at_a_question(name: str, least: float) -> None:
    """Everybody was refused, as if the data set were away, and ``check`` found nothing."""
    assert getattr(parse_settings(f"[limits]\n{name} = {least}\n").limits, name) == least
    for short in (0.0001, 0.9 * least, -1):
        with pytest.raises(ValidationError) as refused:
            parse_settings(f"[limits]\n{name} = {short}\n")
        assert f"must be {least:g} or more: " in explain(refused.value)


@pytest.mark.parametrize("port", ["65536", "99999", "123456", "-1", "", "x"])
def test_a_port_is_one_that_there_is(port: str) -> None:
    """``check`` said that all is well, and the server did not start."""
    for name in ("listen", "metrics"):
        parse_settings(f'[server]\n{name} = "127.0.0.1:65535"\n')
        with pytest.raises(ValidationError):
            parse_settings(f'[server]\n{name} = "127.0.0.1:{port}"\n')


@pytest.mark.parametrize(("network", "named"), [("0.0.0.0/0", True), ("10.0.0.0/8", False)])
def test_a_proxy_that_is_everybody_is_named(tmp_path: Any, network: str, named: bool) -> None:
    """Everybody said for themselves from where they come, and no word was said of it."""
    make_folder(tmp_path)
    file = tmp_path / "stats" / "hushed.toml"
    proxies = f'[server]\ntrusted_proxies = ["127.0.0.1", "{network}"]\n'
    file.write_text(file.read_text().replace("[server]\n", proxies, 1))
    found = [each for each in check_server(tmp_path / "stats").problems if "trusted_prox" in each]
    assert [network in each for each in found] == [True] * named


def test_a_mistaken_epsilon_is_told_what_the_data_set_allows(tmp_path: Any) -> None:
    """What no data set allows was named, 10; and pages spoke of more where a section says more."""
    for most, allowed in (("0.4", 0.4), ("50", 10.0)):
        tokens = make_folder(tmp_path / most, stays=f"max_epsilon = {most}")
        for team in open_team(tmp_path / most / "stats", tokens):
            told = team.send("GET", "/v1/datasets/stays", team.ana).json()
            assert told["max_epsilon"] == allowed
            for path, terms in (("requests", {}), ("quote", {}), ("quote", {"noise": "gaussian"})):
                found = team.send(
                    "POST",
                    f"/v1/datasets/stays/{path}",
                    team.ana,
                    json={"query": QUERY, "epsilon": 5e300} | terms,
                    headers={"Idempotency-Key": "much"},
                ).json()
                assert found["code"] == "bad_value"
                assert f"at most epsilon {allowed!r}" in found["detail"]
            assert team.charges() == 0


@pytest.mark.parametrize("name", ["run_memory", "check_memory"])
def test_the_largest_memory_is_one_that_a_kernel_takes(name: str) -> None:
    """What no kernel takes failed every run, after the charge."""
    with _limits(getattr(parse_settings(f"[limits]\n{name} = {10**15}\n").limits, name)):
        pass
    with pytest.raises(ValidationError):
        parse_settings(f"[limits]\n{name} = {2**63}\n")


@pytest.fixture
def team(tmp_path: Any) -> Any:
    """A team whose answers nobody sees for ten minutes."""
    tokens = make_folder(tmp_path, settings="answer_grid = 600.0")
    yield from open_team(tmp_path / "stats", tokens)


def test_requests_of_one_microsecond_are_all_listed(team: Any) -> None:
    """A page of a list began after the moment at which the one before had ended."""
    asked = {team.ask(team.ana, key, wait=0).json()["id"] for key in "abc"}
    with writing(team.desk.ledger) as connection:
        run(connection, "UPDATE @.hushed_s_requests SET asked_at = '2026-12-01T10:00:00'", {})
    for token in (team.ana, team.sam):
        seen, cursor = [], ""
        while cursor is not None and len(seen) < 9:
            told = team.send("GET", f"/v1/requests?most=1&cursor={cursor}", token).json()
            seen += [each["id"] for each in told["items"]]
            cursor = told["cursor"]
        assert seen == sorted(asked)


def test_what_waits_for_a_data_set_tells_of_no_end(team: Any, monkeypatch: Any) -> None:
    """Where its file changed meanwhile, an ended run counted as open, and another one did not."""
    ledger, caller = team.desk.ledger, find_caller(team.desk.ledger, team.ana, "127.0.0.1")
    assert isinstance(caller, Caller)
    for key in "abc":
        made = team.ask(team.ana, key, wait=0).json()["id"]
        if (end := team.desk.queue.find(made)) is not None:
            end.result(60)
    stale = replace(team.desk.datasets["stays"], stale="its file was changed")
    monkeypatch.setitem(team.desk.datasets, "stays", stale)
    limits = team.desk.settings.limits.model_copy(update={"open_per_person": 3})
    monkeypatch.setattr(
        team.desk, "settings", team.desk.settings.model_copy(update={"limits": limits})
    )
    with reading(ledger) as connection:
        assert count_open(connection, caller.id) == 3
        assert _count_busy(team.desk, connection, caller, 3) == 0


def test_no_two_people_differ_in_capitals_alone(team: Any, tmp_path: Any) -> None:
    """Ana was somebody else than ana, with a second share; a steward may take one for the other."""
    with pytest.raises(ParameterError, match="'ana'"):
        add_person(team.desk.ledger, "Ana", "analyst", actor="sam")
    told = team.send("POST", "/v1/people", team.sam, json={"name": "SAM", "role": "analyst"})
    assert told.status_code == 422
    assert "'sam'" in told.json()["detail"]
    people = team.send("GET", "/v1/people", team.sam).json()["items"]
    assert sorted(each["name"] for each in people) == ["ana", "bo", "sam"]
    with pytest.raises(ParameterError, match="'bo'"):
        invite(tmp_path / "stats", "Bo", "analyst", [], days=1, scope=Scope())
