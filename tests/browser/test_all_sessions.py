"""Turns of all sessions and links to turns: found, counted, opened, also on a phone."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.steps import Visit


@pytest.mark.slow
def test_turns_of_all_sessions_are_found_and_opened(visit: Callable[..., Visit], address: str) -> None:
    word = f"Zanzibar{uuid.uuid4().hex[:6]}"
    first = visit().new_session("travel", f"I want to fly to {word}")
    second = visit().new_session("travel", "I want to fly to Madrid", f"grumph {word} frobnicate quux")
    (bad, _) = second.api.get(f"/v1/sessions/{second.session_id}/turns").json()
    second.api.post(f"/v1/turns/{bad['turn_id']}/feedback", json={"rating": "down"}).raise_for_status()
    here = visit()
    here.page.goto(f"{address}/#panel=overview")
    panel = here.page.get_by_role("tabpanel", name="All sessions")
    found = panel.get_by_role("list", name="Turns found").locator("> li")

    panel.get_by_role("searchbox", name="Words in a message or reply").fill(word.lower())
    panel.get_by_role("button", name="Find").click()
    expect(found).to_have_count(2)
    panel.get_by_label("Thumbs down").check()
    panel.get_by_role("button", name="Find").click()
    expect(found).to_have_count(1)
    expect(found).to_contain_text("Thumbs down")
    panel.get_by_label("Minimum US$").fill("5")
    panel.get_by_role("button", name="Find").click()
    expect(panel).to_contain_text("No turns found")
    panel.get_by_label("Minimum US$").fill("")
    panel.get_by_label("Thumbs down").uncheck()
    panel.get_by_role("button", name="Find").click()
    found.get_by_role("link", name=f"I want to fly to {word}").click()

    expect(here.page.locator("#app")).to_have_attribute("data-session", first.session_id)
    shown = here.page.get_by_role("tabpanel", name="Turn", exact=True)
    expect(shown.get_by_role("region", name="Message and reply")).to_contain_text(word)


@pytest.mark.slow
def test_users_are_listed_and_their_turns_found(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel")
    user = f"ada-{uuid.uuid4().hex[:6]}"
    made = here.api.post("/v1/sessions", json={"domain": "travel", "user_id": user}).json()
    here.api.post(f"/v1/sessions/{made['session_id']}/turns?wait=60", json={"text": "I want to fly to Rome"})

    panel = here.panel("All sessions")
    listed = panel.get_by_role("table", name="Turns by user").locator("tbody tr").filter(has_text=user)
    expect(listed.locator("td").nth(1)).to_have_text("1")
    panel.get_by_role("searchbox", name="User").fill(user)
    panel.get_by_role("button", name="Find").click()
    expect(panel.get_by_role("list", name="Turns found").locator("> li")).to_have_count(1)


@pytest.mark.slow
def test_days_are_drawn_and_told_in_a_table(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel", "I want to fly to Madrid")
    panel = here.panel("All sessions")
    for measure in ("Turns", "Failed", "Not understood", "Median time (ms)", "Cost (US$)"):
        drawn = panel.get_by_role("img", name=f"{measure} by day", exact=True)
        expect(drawn.locator("svg .mark-rect path")).to_have_count(1)
    panel.get_by_text("As a table").click()
    row = panel.get_by_role("table", name="Turns by day").locator("tbody tr")
    expect(row).to_contain_text(re.compile(r"\d{4}-\d\d-\d\d"))


@pytest.mark.slow
def test_a_turn_is_a_link_that_opens_on_a_telephone(visit: Callable[..., Visit]) -> None:
    """The link is enough to show the interpretation, reason, calls, consent and timeline of an older turn."""
    here = visit().new_session("travel", "Book a flight from Oslo to Madrid tomorrow", "yes", "thanks")
    panel = here.panel("Turn")
    panel.get_by_label("Turn", exact=True).select_option(label="#2 yes")
    expect(panel.get_by_role("region", name="Message and reply")).to_contain_text("Booked")
    link = panel.get_by_role("link", name="Link to this turn").evaluate("one => one.href")
    assert here.page.url == link

    there = visit(viewport={"width": 390, "height": 780})
    there.page.goto(link)
    shown = there.page.get_by_role("tabpanel", name="Turn", exact=True)
    expect(shown).to_be_visible()
    expect(shown.get_by_role("region", name="Message and reply")).to_contain_text("Booked")
    calls = shown.get_by_role("region", name="Calls and confirmations")
    expect(calls).to_contain_text("Side effect: Flight book")
    expect(calls).to_contain_text("The user confirmed the call in this turn.")
    expect(shown.get_by_role("region", name="Why this flow")).to_contain_text("Confirmation")
    expect(shown.get_by_role("list", name="Timeline").locator("> li").first).to_be_visible()
    assert there.page.evaluate("document.documentElement.scrollWidth") <= 390
