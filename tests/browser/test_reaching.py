"""Accessibility and safety of the inspector: names, keys, themes, sizes, hostile text (RS-7, RT-22)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Guarded
from tests.browser.steps import PANELS, Visit

PAYLOADS = (Path(__file__).parents[1] / "domains" / "gallery" / "payloads.txt").read_text().splitlines()
FORBIDDEN = (
    "iframe, object, embed, video, audio, marquee, base, template, "
    "#turns :is(script, style, link, meta, img, form, input)"
)


def broken(page: Page) -> list[str]:
    """Return the effects of hostile text in a page."""
    found = (
        [f"window.broken is {page.evaluate('window.broken')}"] if page.evaluate("'broken' in window") else []
    )
    found += page.locator(FORBIDDEN).evaluate_all("all => all.map((one) => one.outerHTML.slice(0, 200))")
    found += page.locator("*").evaluate_all(
        "all => all.flatMap((one) => one.getAttributeNames().filter((name) => name.startsWith('on')))"
    )
    return found


@pytest.mark.slow
def test_an_answer_is_told_to_screen_readers_once_it_is_whole(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel")
    here.say("I want to fly to Madrid", "fly from")
    expect(here.page.locator("#spoken")).to_have_text("Where would you like to fly from?")
    expect(here.page.locator("#spoken")).to_have_attribute("aria-live", "polite")


# The keyboard.


def reach(page: Page, target: Locator) -> None:
    """Press Tab until the element has the focus. Fail after a full round."""
    for _ in range(120):
        if target.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"The keyboard does not reach {target}.")


@pytest.mark.slow
def test_a_flight_is_booked_by_keyboard_alone(visit: Callable[..., Visit], address: str) -> None:
    here = visit()
    page = here.page
    page.goto(address)
    expect(page.get_by_role("heading", name="Chat and inspect")).to_be_visible()
    page.keyboard.press("n")
    expect(page.get_by_role("dialog", name="New session")).to_be_visible()
    page.keyboard.type("travel")
    page.keyboard.press("Enter")
    expect(here.box).to_be_focused()
    page.keyboard.type("Book a flight from Oslo to Madrid tomorrow")
    page.keyboard.press("Enter")
    here.answered(0, "Shall I book it")

    reach(page, page.get_by_role("button", name="Yes", exact=True))
    page.keyboard.press("Enter")
    here.answered(1, "Booked")
    page.keyboard.press("Escape")
    page.keyboard.press("6")
    expect(page.get_by_role("tab", name="Journal")).to_be_focused()
    expect(page.get_by_role("region", name="Side effects")).to_contain_text("Flight book")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Events")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Events")).to_contain_text("Answer")
    page.keyboard.press("[")
    expect(page.locator("#epoch-banner")).to_contain_text("Version 1 of 2")
    page.keyboard.press("Escape")
    expect(page.locator("#epoch-banner")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(here.box).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(here.box).to_have_value("Book a flight from Oslo to Madrid tomorrow")


# Looks.


@pytest.mark.slow
def test_light_and_dark_follow_the_system_until_somebody_chooses(
    visit: Callable[..., Visit], address: str
) -> None:
    here = visit(color_scheme="dark")
    here.page.goto(address)
    root = here.page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    here.page.get_by_role("button", name="Switch between light and dark").click()
    expect(root).to_have_attribute("data-theme", "light")
    here.page.reload()
    expect(root).to_have_attribute("data-theme", "light")


@pytest.mark.slow
def test_a_reload_asks_for_no_file_again(visit: Callable[..., Visit], address: str) -> None:
    here = visit()
    here.page.goto(address)
    here.page.reload()
    expect(here.page.get_by_role("link", name="Flower")).to_be_visible()
    sent = here.page.evaluate(
        "performance.getEntriesByType('resource').filter((one) => one.name.includes('/inspector/'))"
        ".map((one) => one.transferSize)"
    )
    assert len(sent) > 40
    assert set(sent) == {0}


@pytest.mark.slow
def test_a_telephone_shows_one_part_at_a_time(visit: Callable[..., Visit]) -> None:
    here = visit(viewport={"width": 390, "height": 780}).new_session("travel")
    here.say("I want to fly to Madrid", "fly from")
    assert here.page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(here.page.get_by_role("tab", name="Stack")).to_be_hidden()
    here.page.get_by_role("button", name="Inspector", exact=True).click()
    here.expect_stack("Book flight.*Active")
    assert here.page.evaluate("document.documentElement.scrollWidth") <= 390
    here.page.get_by_role("button", name="Sessions", exact=True).click()
    expect(here.page.get_by_role("button", name="New session")).to_be_visible()


# Keys.


@pytest.mark.slow
def test_a_gateway_that_asks_for_a_key_is_given_one(guarded: Guarded, visit: Callable[..., Visit]) -> None:
    """RT-22: events need the key as well; after a wrong key, the page asks again."""
    here = visit()
    here.address = guarded.address
    key = guarded.make_key("--operator")
    page = here.page
    page.goto(guarded.address)
    dialog = page.get_by_role("dialog", name="API key")
    dialog.get_by_label("Key", exact=True).fill("not-a-key")
    dialog.get_by_role("button", name="Use this key").click()
    expect(dialog).to_contain_text("does not accept this key")
    dialog.get_by_label("Key", exact=True).fill(key)
    dialog.get_by_role("button", name="Use this key").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("link", name="Flower")).to_be_visible()

    page.keyboard.press("n")
    page.get_by_role("dialog", name="New session").get_by_label("Domain").select_option("travel")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#live-text")).to_have_text("Live")
    here.say("I want to fly to Madrid", "fly from")
    page.reload()
    here.answered(0, "fly from")
    assert key not in page.content()
    here.complaints[:] = [text for text in here.complaints if "401" not in text]


@pytest.mark.slow
def test_a_users_key_shows_his_own_sessions_alone(guarded: Guarded, visit: Callable[..., Visit]) -> None:
    visit().new_session("travel")
    here = visit()
    here.address = guarded.address
    page = here.page
    page.goto(guarded.address)
    page.get_by_role("dialog").get_by_label("Key", exact=True).fill(guarded.make_key("--user", "ada"))
    page.keyboard.press("Enter")
    page.get_by_role("button", name="New session").first.click()
    page.get_by_role("dialog", name="New session").get_by_label("Domain").select_option("travel")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#live-text")).to_have_text("Live")
    here.say("I want to fly to Madrid", "fly from")

    expect(page.get_by_role("list", name="Recent sessions").get_by_role("button")).to_have_count(1)
    expect(page.get_by_role("link", name="Flower")).to_be_hidden()
    for name in PANELS:
        expect(here.panel(name).locator(":scope > *").first).to_be_visible()
    here.complaints[:] = [text for text in here.complaints if not re.search("401|403", text)]


# Hostile text.


def test_hostile_text_of_users_stays_text(visit: Callable[..., Visit]) -> None:
    """RS-7"""
    here = visit().new_session("travel", *PAYLOADS)
    said = [text.removeprefix("You: ") for text in here.page.locator("#turns .said").all_text_contents()]
    assert said == PAYLOADS
    for name in ("Stack", "Scratchpad", "Journal", "Events", "Runs", "Versions", "Turn"):
        here.panel(name)
        assert broken(here.page) == [], name
    here.page.get_by_role("button", name="Replay").click()
    expect(here.page.get_by_role("region", name="Replay")).to_be_visible()
    assert broken(here.page) == []


def test_hostile_text_of_tools_and_models_stays_text(visit: Callable[..., Visit]) -> None:
    """RS-7: cells and headings of a table, names and values of a card, an answer by a model."""
    here = visit().new_session("gallery")
    table = here.say("list the exhibits", ".")
    cells = table.locator("tbody td:nth-child(2)")
    seen = cells.all_text_contents()
    table.get_by_role("button", name="Next page").click()
    expect(table.get_by_text("Rows 26–50 of 50")).to_be_visible()
    assert [*seen, *cells.all_text_contents()] == PAYLOADS

    card = here.say("show the card", re.escape("window.broken=1"))
    for more in card.locator(".block summary").all():
        more.click()
    values = card.locator(".block dd").all_text_contents()
    assert set(values) >= set(PAYLOADS[:38])
    expect(card.locator(".answer > .text")).to_have_text(" ".join(PAYLOADS[:3]))
    panel = here.panel("Journal")
    for more in panel.locator("summary").all():
        more.click()
    assert broken(here.page) == []


@pytest.fixture
def attack(visit: Callable[..., Visit]) -> Iterator[Visit]:
    """Open a page that tries what the policy forbids, with expected browser errors."""
    here = visit().new_session("travel")
    yield here
    here.complaints.clear()


def test_the_policy_stops_what_would_get_through(attack: Visit) -> None:
    """The browser refuses inline scripts, markup from text, evaluated text and other hosts."""
    page = attack.page
    for attempt in (
        "document.body.innerHTML = '<img src=x onerror=window.broken=1>'",
        "window.setTimeout('window.broken = 1')",
        "document.body.setAttribute('onclick', 'window.broken = 1')",
        "{ const one = document.createElement('script'); one.text = 'window.broken = 1'; document.head.append(one) }",
        "document.createElement('script').src = 'https://example.invalid/x.js'",
    ):
        assert page.evaluate(f"() => {{ try {{ {attempt} }} catch (error) {{ return error.name }} }}") in {
            "EvalError",
            "TypeError",
        }, attempt
    assert page.evaluate("fetch('https://example.invalid/').then(() => 'ran', () => 'refused')") == "refused"
    assert not page.evaluate("'broken' in window")
