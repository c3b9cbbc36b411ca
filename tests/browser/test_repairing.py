"""RT-35: an operator repairs a session in the page: choose, preview, give a reason, see the result."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.steps import Visit

pytestmark = pytest.mark.timeout(180)


@pytest.mark.slow
def test_a_repair_is_previewed_made_and_told(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel")
    here.say("Book a flight from Oslo to Madrid tomorrow", "Shall I book it")
    panel = here.panel("Repair")
    expect(panel.get_by_role("region", name="Problems")).to_contain_text("The state has no problems")
    panel.get_by_label("Flow", exact=True).fill("flow_gone")
    panel.get_by_role("button", name="Preview").click()
    expect(panel.get_by_role("alert")).to_contain_text("No open task 'flow_gone' found.")
    expect(panel.get_by_role("button", name="Repair", exact=True)).to_have_count(0)

    panel.get_by_label("Flow", exact=True).fill("book_flight")
    panel.get_by_role("button", name="Preview").click()
    preview = panel.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("book_flight is canceled.")
    panel.get_by_label("Why").fill("The user has called.")
    number = here.turns.count()
    panel.get_by_role("button", name="Repair", exact=True).click()
    here.answered(number, "I've stopped booking a flight")
    expect(preview).to_have_count(0)

    path = f"/v1/sessions/{here.session_id}/events?follow=false"
    assert '"why":"The user has called."' in here.api.get(path).text
