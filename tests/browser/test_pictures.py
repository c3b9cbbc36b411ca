"""Screenshots in `docs/inspector.md`, from conversations in these tests. `make screenshots` writes them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.steps import Visit
from tests.browser.test_reading import TRIP

pytestmark = pytest.mark.slow

DOCUMENTS = Path(__file__).parents[2] / "docs"
NAMES = sorted(
    re.findall(r"images/(inspector-[a-z-]+)\.png", (DOCUMENTS / "inspector.md").read_text("utf-8"))
)


def booking(here: Visit) -> None:
    here.say("Book a flight from Oslo to Tokyo for 2 people in business class", "What day")
    here.say("show me my bookings", "Back to booking a flight")
    here.expect_stack("Book flight.*Active")


def chart(here: Visit) -> None:
    turn = here.say("bar chart of average miles per gallon by origin in cars", "Here's the bar chart")
    expect(turn.locator(".drawing svg")).to_be_visible(timeout=60_000)


def runs(here: Visit) -> None:
    here.say("I want to fly to Madrid", "fly from")
    for flow in ("summarize_session", "tidy_scratchpad"):
        here.api.post("/v1/runs", json={"flow": flow, "session_id": here.session_id}).raise_for_status()
    here.say("from Oslo", "day")
    expect(here.panel("Runs").get_by_role("button", name=re.compile("Summarize session"))).to_contain_text(
        re.compile("done|skipped|failed")
    )


def approval(here: Visit) -> None:
    here.say("Book a flight from Oslo to Melbourne tomorrow for 8 people", "Shall I book it")
    here.choose("Yes", "needs approval")
    expect(here.panel("Approvals")).to_contain_text("above the limit of 5000")


def epochs(here: Visit) -> None:
    here.say("I want to fly to Madrid", "fly from")
    here.say("from Oslo", "day")
    here.say("actually to Rome", "day")
    here.panel("Versions").get_by_role("button", name="Earlier").click()
    expect(here.page.locator("#epoch-banner")).to_contain_text("Version 2 of 3")


def plan_dark(here: Visit) -> None:
    for text, answer in zip(TRIP, ("leave from", "Shall I book it"), strict=True):
        here.say(text, answer)
    expect(here.panel("Plan").get_by_role("progressbar", name="Plan progress")).to_be_visible()


def turn(here: Visit) -> None:
    here.say("tell me the story", "In room 16")
    call = here.panel("Turn").get_by_role("listitem").filter(has_text="Model call")
    call.get_by_text("Prompt", exact=True).click()
    expect(call.get_by_role("region", name="Prompt: user")).to_be_visible()


def sessions(here: Visit) -> None:
    here.say("fly me on a broom to the moon", ".")
    here.say("I want to fly to Madrid", "fly from")
    here.say("from Oslo", "day")
    panel = here.panel("All sessions")
    expect(panel.get_by_role("img", name="Turns by day", exact=True).locator("svg")).to_be_visible()
    expect(panel.get_by_role("list", name="Turns found")).to_contain_text("from Oslo")


SHOWN: dict[str, tuple[str, Callable[[Visit], None]]] = {
    "inspector-approval": ("travel", approval),
    "inspector-booking": ("travel", booking),
    "inspector-chart": ("analytics", chart),
    "inspector-epochs": ("travel", epochs),
    "inspector-plan-dark": ("travel", plan_dark),
    "inspector-runs": ("travel", runs),
    "inspector-sessions": ("travel", sessions),
    "inspector-turn": ("gallery", turn),
}


def test_every_picture_of_the_page_is_made_here() -> None:
    assert sorted(SHOWN) == NAMES


@pytest.mark.parametrize("name", SHOWN)
def test_a_picture_is_made(name: str, visit: Callable[..., Visit], tmp_path: Path) -> None:
    domain, talk = SHOWN[name]
    here = visit(color_scheme="dark" if name.endswith("-dark") else "light").new_session(domain)
    talk(here)
    folder = Path(os.environ.get("PARLEY_PICTURES", tmp_path))
    here.page.screenshot(path=folder / f"{name}.png")
    assert (folder / f"{name}.png").stat().st_size > 20_000
