"""What the panels show: plans, runs, epochs, replays, events (PL-6, IF-16, ST-2)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.steps import Visit

pytestmark = pytest.mark.timeout(180)

TRIP = (
    "plan a weekend in Lisbon for two under 1200 euros",
    "Oslo",
    "Friday 27 November 2026",
    "Sunday 29 November 2026",
)
TO_MADRID = ("I want to fly to Madrid", "from Oslo", "actually to Rome")


def test_a_plan_shows_its_steps_its_progress_and_its_revisions(visit: Callable[..., Visit]) -> None:
    """PL-6"""
    here = visit().new_session("travel")
    plan = here.panel("Plan")
    expect(plan).to_contain_text("This session has no plan")
    here.seed(*TRIP[:-1])
    expect(here.turns).to_have_count(len(TRIP) - 1)
    here.say(TRIP[-1], "Shall I book it")

    told = here.api.get(f"/v1/sessions/{here.session_id}/plan").json()
    progress = plan.get_by_role("progressbar", name="Progress of the plan")
    expect(progress).to_have_attribute("aria-valuenow", str(told["completed"]))
    expect(progress).to_have_attribute("aria-valuemax", str(told["total"]))
    steps = plan.get_by_role("list", name="Steps").locator("> li .what")
    expect(steps).to_have_text([re.compile(step["purpose"], re.IGNORECASE) for step in told["steps"]])
    revisions = plan.get_by_role("region", name="Revisions").locator("> ol > li")
    expect(revisions).to_have_count(len(told["revisions"]))
    expect(revisions.first).to_contain_text(told["progress"])
    here.choose("Yes", "Booked")
    expect(progress).to_have_attribute("aria-valuenow", str(told["completed"] + 1))


def test_a_turn_shows_why_it_became_its_flow_and_its_course(visit: Callable[..., Visit]) -> None:
    """CO-6: who read the message, between which flows, and what was done when."""
    here = visit().new_session("travel")
    panel = here.panel("Turn")
    expect(panel).to_contain_text("No turn yet")
    here.say("I want to fly to Madrid", "fly from")

    why = panel.get_by_role("region", name="Why this flow")
    expect(why).to_contain_text("Read by")
    expect(why.get_by_role("list", name="Candidates").locator("li").first).to_contain_text("Book flight")
    course = panel.get_by_role("list", name="Course of the turn").locator("> li")
    expect(course.first).to_contain_text("after")
    (first,) = here.api.get(f"/v1/sessions/{here.session_id}/turns").json()
    expect(course).to_have_count(len(here.api.get(f"/v1/turns/{first['turn_id']}/journal").json()["signals"]))

    here.say("from Oslo", "day")
    expect(panel.get_by_label("Turn", exact=True).locator("option").first).to_have_text("#2 from Oslo")
    panel.get_by_label("Turn", exact=True).select_option(index=1)
    expect(why.get_by_role("list", name="Candidates").locator("li").first).to_contain_text("Book flight")


def test_sessions_are_searched(visit: Callable[..., Visit]) -> None:
    first, here = visit().new_session("travel"), visit().new_session("analytics")
    found = here.page.get_by_role("list", name="Recent sessions").get_by_role("button")
    search = here.page.get_by_role("searchbox", name="Search sessions")

    search.fill(first.session_id.upper())
    expect(found).to_have_count(1)
    search.fill(f"analytics {here.session_id[-8:]} open")
    expect(found).to_contain_text([here.session_id])
    search.fill("nothing is called so")
    expect(found).to_have_count(0)


def test_stepping_back_shows_an_earlier_state_and_what_has_changed(visit: Callable[..., Visit]) -> None:
    """ST-2"""
    here = visit().new_session("travel")
    here.seed(*TO_MADRID)
    here.page.reload()
    here.expect_stack("Book flight.*Active")

    epochs = here.panel("Epochs")
    epochs.get_by_role("button", name="Earlier").click()
    epochs.get_by_role("button", name="Earlier").click()
    expect(here.page.locator("#epoch-banner")).to_contain_text("Epoch 1 of 3")
    expect(epochs.locator(".changes")).to_contain_text("origin")
    expect(epochs.locator(".changes ins").first).to_be_visible()
    slots = here.panel("Stack").locator(".flow .pairs")
    expect(slots).to_contain_text("MAD")
    expect(slots).not_to_contain_text("OSL")

    here.page.locator("#epoch-banner").get_by_role("button", name="Back to now").click()
    expect(here.page.locator("#epoch-banner")).to_be_hidden()
    expect(slots).to_contain_text("OSL")


def test_a_roll_back_asks_first_and_makes_a_new_epoch(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel")
    here.seed("I want to fly to Madrid", "from Oslo")
    here.page.reload()
    here.turns.first.get_by_role("button", name="Show the state after message 1").click()
    epochs = here.panel("Epochs")

    epochs.get_by_role("button", name="Roll back to epoch 1").click()
    here.page.get_by_role("button", name="Cancel").click()
    assert here.api.get(f"/v1/sessions/{here.session_id}").json()["epoch"] == 2
    epochs.get_by_role("button", name="Roll back to epoch 1").click()
    here.page.get_by_role("dialog").get_by_role("button", name="Roll back").click()

    expect(epochs).to_contain_text("3 of 3")
    slots = here.panel("Stack").locator(".flow .pairs")
    expect(slots).to_contain_text("MAD")
    expect(slots).not_to_contain_text("OSL")


def test_a_finished_session_is_played_again(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel")
    here.seed("Book a flight from Oslo to Madrid tomorrow", "yes")
    here.api.delete(f"/v1/sessions/{here.session_id}")
    here.page.reload()
    expect(here.box).to_be_disabled()
    expect(here.turns).to_have_count(2)

    here.page.get_by_role("button", name="Replay").click()
    replay = here.page.get_by_role("region", name="Replay")
    expect(replay).to_contain_text("Before the first event")
    expect(here.turns).to_have_count(0)
    while "Answer" not in replay.locator(".step").inner_text():
        replay.get_by_role("button", name="One event forward").click()
    expect(here.turns).to_have_count(1)
    expect(here.turns.first).to_contain_text("Shall I book it")
    here.expect_stack("Book flight.*Active")

    replay.get_by_label("Pace").select_option("Fast")
    replay.get_by_role("button", name="Play", exact=True).click()
    here.answered(1, "Booked")
    expect(replay.get_by_role("button", name="Play", exact=True)).to_be_visible()
    expect(here.page.locator("#panel-stack")).to_contain_text("No flow is open")
    replay.get_by_role("button", name="End replay").click()
    expect(replay).to_be_hidden()
    expect(here.turns).to_have_count(2)


def test_runs_are_a_graph_on_the_timeline(visit: Callable[..., Visit]) -> None:
    """IF-16"""
    here = visit().new_session("travel")
    here.seed("I want to fly to Madrid")
    body = {"flow": "summarize_session", "session_id": here.session_id}
    run_id = here.api.post("/v1/runs", json=body).json()["run_id"]
    here.page.reload()

    panel = here.panel("Runs")
    expect(panel.get_by_text("#1 I want to fly to Madrid")).to_be_visible()
    node = panel.get_by_role("button", name=re.compile("Summarize session"))
    expect(node).to_contain_text(re.compile("done|skipped|failed"))
    expect(panel.locator("path.edge")).to_have_count(1)
    node.click()
    details = panel.get_by_role("region", name="Run summarize_session")
    details.get_by_role("button", name="Run again").click()
    expect(panel.get_by_role("button", name=re.compile("Summarize session"))).to_have_count(2)
    expect(panel.locator("path.edge.again")).to_have_count(1)
    assert here.api.get(f"/v1/runs/{run_id}").json()["chain"][0] == run_id


def test_events_are_listed_as_they_happen(visit: Callable[..., Visit]) -> None:
    """RT-15"""
    here = visit().new_session("travel")
    log = here.panel("Events")
    expect(log).to_contain_text("No events yet")
    here.say("Find flights from Oslo to Madrid tomorrow", "Madrid")

    kinds = log.locator(".log .type")
    expect(kinds.filter(has_text="Answer")).to_have_count(1)
    expect(kinds.filter(has_text="Accepted")).to_have_count(1)
    expect(log).to_contain_text("tool id: flight_search")
    log.get_by_label("Type of events").select_option("Answer")
    expect(kinds).to_have_count(1)


def test_a_deep_link_opens_session_panel_and_epoch(visit: Callable[..., Visit], address: str) -> None:
    here = visit().new_session("travel")
    here.seed("I want to fly to Madrid", "from Oslo")

    there = visit()
    there.page.goto(f"{address}/#session={here.session_id}&panel=epochs&epoch=1")

    expect(there.page.get_by_role("tab", name="Epochs")).to_have_attribute("aria-selected", "true")
    expect(there.page.locator("#epoch-banner")).to_contain_text("Epoch 1 of 2")


def test_flower_is_linked(visit: Callable[..., Visit], address: str) -> None:
    here = visit()
    here.page.goto(address)
    link = here.page.get_by_role("link", name="Flower")
    expect(link).to_have_attribute("href", re.compile(r"^http://127\.0\.0\.1:\d+$"))
