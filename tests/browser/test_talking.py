"""Conversations in the inspector: a booking, a chart, a reload during an answer, two pages, forms (RS-4, RS-5)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.steps import Visit


def test_a_booking_with_an_interruption_and_an_approval(visit: Callable[..., Visit]) -> None:
    """PX-17: the stack, the suggested replies and the approval are shown while they happen."""
    here = visit().new_session("travel")
    here.say("Book a flight from Oslo to Melbourne for 8 people", "What day")
    here.expect_stack("Book flight.*Active")
    aside = here.say("show me my bookings", "no bookings yet(?s:.*)Back to booking a flight")
    expect(aside.get_by_role("region", name="List your bookings")).to_be_visible()
    here.expect_stack("Book flight.*Active")
    expect(here.page.locator("#panel-stack .flow .pairs")).to_contain_text("MEL")

    here.say("tomorrow", "Shall I book it")
    expect(here.page.locator("#panel-stack")).to_contain_text("Open question")
    here.choose("Yes", "needs approval")
    here.expect_stack("Book flight.*awaiting approval")

    expect(here.page.get_by_role("tab", name="Approvals 1 waiting")).to_be_visible()
    panel = here.panel("Approvals")
    expect(panel).to_contain_text("above the limit of 5000")
    panel.get_by_label("Reason for the decision").fill("The customer is known")
    number = here.turns.count()
    panel.get_by_role("button", name="Grant: Flight book").click()
    booked = here.answered(number, "Booked. Your reference is [A-Z0-9]{6}")
    expect(booked.locator(".block.card")).to_contain_text("Melbourne")
    expect(panel).to_contain_text("The customer is known")
    expect(panel).to_contain_text("used")

    effects = here.panel("Journal").get_by_role("region", name="Side effects")
    expect(effects).to_contain_text("Flight book")
    expect(effects).to_contain_text("done")
    calls = here.panel("Journal").get_by_role("region", name="Calls")
    expect(calls).to_contain_text(re.compile(r"for \d+(\.\d)? m?s"))
    expect(here.panel("Stack")).to_contain_text("No flow is open")


@pytest.mark.slow
def test_a_chart_appears(visit: Callable[..., Visit]) -> None:
    """RS-5: Vega-Lite under a policy that forbids evaluating text; the data are accessible for everyone."""
    here = visit().new_session("analytics")
    turn = here.say("bar chart of average miles per gallon by origin in cars", "Here's the bar chart")

    chart = turn.get_by_role("img", name=re.compile("Chart: Average mpg of cars by origin"))
    expect(chart.locator("svg")).to_be_visible(timeout=60_000)
    expect(chart.locator("svg .mark-rect.role-mark path")).to_have_count(3)
    turn.get_by_text("Show data").click()
    expect(turn.get_by_role("cell", name="Japan")).to_be_visible()


@pytest.mark.slow
def test_what_is_written_while_a_turn_runs_is_understood_against_it(visit: Callable[..., Visit]) -> None:
    """RT-5: unless the session has its own rule, which then applies."""
    for rule, sent in ({}, None), ({"if_busy": "reject"}, None):
        here = visit()
        made = here.api.post("/v1/sessions", json={"domain": "travel", **rule}).json()
        here.open(made["session_id"])
        with here.page.expect_request(
            lambda request: request.method == "POST" and "/turns" in request.url
        ) as asked:
            here.write("Hello")
        assert json.loads(asked.value.post_data or "{}").get("if_busy") == sent


def test_a_reload_in_the_middle_of_an_answer_goes_on(visit: Callable[..., Visit]) -> None:
    """RS-4, RT-15"""
    here = visit().new_session("gallery")
    here.write("tell me the story")
    streaming = here.page.locator(".answer.streaming .text")
    expect(streaming).to_contain_text("In room 2 hangs a picture")
    before = streaming.inner_text()

    here.page.reload()
    expect(streaming).to_contain_text(before)
    goes_on = streaming.inner_text()
    assert "In room 16" not in goes_on
    here.answered(
        0, "In room 16 hangs a picture of the sea, and beneath it stands a chair that nobody may use.$"
    )
    expect(here.turns).to_have_count(1)


@pytest.mark.slow
def test_two_pages_on_one_session_agree(visit: Callable[..., Visit]) -> None:
    one = visit().new_session("travel")
    other = visit().open(one.session_id)

    one.say("Book a flight from Oslo to Madrid tomorrow", "Shall I book it")
    other.answered(0, "Shall I book it")
    other.choose("Yes", "Booked")
    one.answered(1, "Booked")

    for here in (one, other):
        expect(here.turns).to_have_count(2)
        expect(here.panel("Stack")).to_contain_text("No flow is open")
    said = [here.page.locator("#turns .text").all_inner_texts() for here in (one, other)]
    assert said[0] == said[1]


@pytest.mark.slow
def test_a_form_is_filled_in_and_sent(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("gallery")
    here.say("register a guest", "I need a few things to register a guest")
    form = here.page.get_by_role("form", name="Still needed")
    form.get_by_label("What is the guest's name?").fill("Ada Lovelace")
    form.get_by_label("Which room?").select_option(label="east")
    form.get_by_role("button", name="Send").click()

    here.answered(1, "register")
    expect(here.panel("Journal").get_by_role("region", name="Side effects")).to_contain_text("Ada Lovelace")


def test_what_could_not_be_sent_is_sent_again_once(visit: Callable[..., Visit]) -> None:
    """RT-4: with the same key, so the result is one turn."""
    here = visit().new_session("travel")
    here.page.route("**/turns", lambda route: route.abort())
    here.write("Book a flight to Madrid")
    expect(here.page.get_by_role("alert")).to_have_text("The gateway can't be reached.")
    here.page.unroute("**/turns")
    here.page.get_by_role("button", name="Send again").click()

    here.answered(0, "fly from")
    expect(here.turns).to_have_count(1)
    here.complaints[:] = [text for text in here.complaints if "net::ERR_FAILED" not in text]


@pytest.mark.slow
def test_a_rating_is_kept_with_its_turn(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel")
    here.say("I want to fly to Madrid", "fly from")
    thumb = here.page.get_by_role("button", name="Bad answer: message 1")
    thumb.click()
    expect(thumb).to_have_attribute("aria-pressed", "true")

    here.page.reload()
    expect(thumb).to_have_attribute("aria-pressed", "true")
    expect(here.page.get_by_role("button", name="Good answer: message 1")).to_have_attribute(
        "aria-pressed", "false"
    )
