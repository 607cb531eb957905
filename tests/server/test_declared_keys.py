"""A condition on a text that the declared keys of a column lack is told before it is paid."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")

from tests.server.conftest import QUERY, make_folder, open_team

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
