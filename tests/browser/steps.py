"""Steps of inspector users, in terms of the accessibility tree."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field

import httpx
from playwright.sync_api import ConsoleMessage, Error, Locator, Page, Request, expect

LONGEST_WAIT_MS = 180_000
"""Playwright gives up after thirty seconds by default. A page may take as long on a busy machine."""
expect.set_options(timeout=LONGEST_WAIT_MS)
GROUPS = {
    "Conversation": ("Stack", "Plan", "Approvals", "Versions"),
    "Turn": ("Turn", "Journal", "Events"),
    "Data": ("Scratchpad", "Memory", "Documents"),
    "Operations": ("All sessions", "Runs", "Evaluations", "Replays", "Repair"),
}
PANELS = tuple(panel for panels in GROUPS.values() for panel in panels)


@dataclass
class Visit:
    """An open page. `complaints`: console errors and exceptions. `strangers`: requests to other hosts."""

    page: Page
    address: str
    api: httpx.Client
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    session_id: str = ""

    def __post_init__(self) -> None:
        self.page.on("console", self._take_message)
        self.page.on("pageerror", self._take_error)
        self.page.on("request", self._take_request)

    def _take_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def _take_error(self, error: Error) -> None:
        self.complaints.append(str(error))

    def _take_request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "about:")):
            self.strangers.append(request.url)

    # Opening and leaving.

    def new_session(self, domain: str, *texts: str) -> Visit:
        """Create a session with these texts over the API, and open its deep link."""
        body = {"domain": domain, "session_id": f"{domain}-{uuid.uuid4().hex[:8]}"}
        made = self.api.post("/v1/sessions", json=body)
        assert made.status_code == 201, made.text
        self.session_id = made.json()["session_id"]
        self.seed(*texts)
        self.open(self.session_id)
        expect(self.turns).to_have_count(len(texts))
        return self

    def open(self, session_id: str) -> Visit:
        self.session_id = session_id
        self.page.goto(f"{self.address}/#session={session_id}")
        expect(self.page.locator("#app")).to_have_attribute("data-session", session_id)
        expect(self.page.locator("#live-text")).to_have_text("Live")
        return self

    def leave(self) -> None:
        """Leave the page and delete the browser's stored data."""
        if self.page.url.startswith("http"):
            self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self.page.goto("about:blank")

    def begin_anew(self, address: str) -> None:
        """Become a new visitor on the same page."""
        self.address, self.session_id = address, ""
        self.complaints.clear()
        self.strangers.clear()

    # The conversation.

    @property
    def box(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message")

    @property
    def turns(self) -> Locator:
        return self.page.locator("#turns > li")

    def write(self, text: str) -> None:
        self.box.fill(text)
        self.box.press("Enter")

    def say(self, text: str, answer: str) -> Locator:
        """Send a message, wait for the answer and return its turn."""
        number = self.turns.count()
        self.write(text)
        return self.answered(number, answer)

    def answered(self, number: int, answer: str) -> Locator:
        turn = self.turns.nth(number)
        expect(turn.locator(".answer:not(.streaming) .text")).to_contain_text(re.compile(answer))
        return turn

    def choose(self, reply: str, answer: str) -> Locator:
        """Click a suggested reply."""
        number = self.turns.count()
        self.page.get_by_role("group", name="Suggested replies").get_by_role(
            "button", name=reply, exact=True
        ).click()
        return self.answered(number, answer)

    # The panels.

    def panel(self, name: str) -> Locator:
        """Open a panel in its group."""
        (group,) = [group for group, panels in GROUPS.items() if name in panels]
        self.page.get_by_role("group", name="Panel groups").get_by_role("button", name=group).click()
        self.page.get_by_role("tab", name=name).click()
        return self.page.get_by_role("tabpanel", name=name)

    @property
    def stack(self) -> list[str]:
        """Return the flows on the stack with their states, top first."""
        flows = self.page.locator("#panel-stack .flow header")
        return [text.replace("\n", " ") for text in flows.all_inner_texts()]

    def expect_stack(self, *flows: str) -> None:
        expect(self.page.locator("#panel-stack .flow header")).to_have_text(
            [re.compile(flow) for flow in flows]
        )

    def seed(self, *texts: str) -> list[dict[str, object]]:
        """Submit turns over the API, and wait for each."""
        path = f"/v1/sessions/{self.session_id}/turns?wait=60"
        turns = [self.api.post(path, json={"text": text}).json() for text in texts]
        assert {turn["status"] for turn in turns} <= {"done"}
        return turns
