"""A condition on a text that the declared keys of a column lack is told before it is paid."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")

from tests.server.conftest import QUERY, make_folder, open_team

from hushed.server._sources import Source
from hushed.server._worker import judge

pytestmark = pytest.mark.slow
SAID = "'AA' is not in the public list of what ward holds"


def test_a_text_that_is_no_declared_key_is_told_in_price_and_answer(tmp_path):
    """By the declared list alone: A and B are declared, and the rows have a third ward, too."""
    tokens = make_folder(tmp_path)
    for team in open_team(tmp_path / "stats", tokens):
        for text, told in (("AA", True), ("A", False)):
            query = QUERY | {"steps": [{"filter": f"ward == '{text}'"}]}
            body = {"query": query, "epsilon": 0.1}
            price = team.send("POST", "/v1/datasets/stays/quote", team.ana, json=body).json()
            assert (SAID in price["words"]) is told
            made = team.ask(team.ana, f"key {text}", query=query).json()
            answer = team.answer(team.ana, made["id"]).json()
            assert any(SAID in each for each in answer["warnings"]) is told


@pytest.mark.parametrize("keys", [100, 101])
def test_private_keys_of_a_list_are_refused_where_all_of_them_are_too_many(tmp_path, keys):
    """Before it is paid, and in the price: 101 keys of 10,000 bins are more than a million."""
    file = tmp_path / "stays.csv"
    file.write_text("patient,ward,cost\nP1,A,1\n")
    listed = {"ward": tuple(f"w{i}" for i in range(keys))}
    types = {"cost": "float"}
    table = Source(
        address=str(file), table="stays", user="patient", types=types, listed=listed
    ).open()
    bins = {"kind": "histogram", "column": "cost", "low": 0, "high": 50, "bins": 10_000}
    query = QUERY | {
        "groups": {"columns": ["ward"]},
        "aggregates": [bins],
        "max_groups_per_user": 1,
    }
    asked = {"query": query, "epsilon": 0.1, "delta": 1e-6, "noise": "laplace"}
    told = {"do": "check", "run_seconds": 30, "asked": asked}
    price = {"do": "price", "asked": asked | {"errors": None, "rows": None}}
    for each in (told, price):
        found = judge(table, each)
        assert ("problem" in found) is (keys > 100), found
        assert keys == 100 or "a question to a server reads at most" in found["detail"]
