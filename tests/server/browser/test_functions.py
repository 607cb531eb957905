"""The page of a registered function in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.served import find_faults, scrolls_sideways
from tests.server.browser.test_pages import confirm

pytestmark = pytest.mark.browser


def list_states_of_functions(house: Any, enter: Any, **more: Any) -> Any:
    """The pages of a registered function: to price it either way, to pay, to wait."""
    ana, watch = enter("ana", **more)
    watch.allow("422")
    ana.goto(f"{house.url}/datasets/stays")
    yield ana, "a data set with functions"
    ana.get_by_role("link", name="mean_cost").first.click()
    ana.get_by_label("Privacy loss (epsilon)").wait_for()
    yield ana, "a function"
    ana.get_by_label("Privacy loss (epsilon)").fill("many")
    ana.get_by_role("button", name="Check the price").press("Enter")
    ana.locator("#epsilon[aria-invalid]").wait_for()
    yield ana, "a function with an error"
    ana.get_by_label("Privacy loss (epsilon)").fill("")
    ana.get_by_label("or the error that 95 % of releases keep").fill("20")
    ana.get_by_role("button", name="Check the price").press("Enter")
    ana.get_by_label("What is it for").wait_for()
    ana.get_by_label("What is it for").press("Enter")  # no field pays
    yield ana, "a price by an error"
    confirm(ana)
    ana.get_by_text("The answer is stored").wait_for()
    yield ana, "a release"
    ana.goto(f"{house.url}/functions/mean_cost")
    ana.get_by_label("Privacy loss (epsilon)").fill("0.3")
    ana.get_by_role("button", name="Check the price").press("Enter")
    ana.get_by_role("button", name="Ask for approval").press("Enter")
    ana.wait_for_url(re.compile(r"/requests/[0-9a-f-]{36}$"))
    yield ana, "a release that waits"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_functions_can_be_used_by_everybody(house_of_functions, enter_functions, width, scheme):
    """By keyboard, with axe, on a phone; the one that was paid is charged once."""
    house, seen = house_of_functions, []
    states = list_states_of_functions(house, enter_functions, width=width, color_scheme=scheme)
    for page, state in states:
        assert find_faults(page) == [], state
        assert not scrolls_sideways(page), state
        seen.append(state)
    assert (len(seen), house.charges) == (6, 1)
