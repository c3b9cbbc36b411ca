"""RS-7: text of users, tools and models stays text in rendered answers."""

from __future__ import annotations

import html
import re
from functools import cache
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from orchestrator.domain.services import ServiceContext
from orchestrator.res.markup import to_plain
from orchestrator.res.streaming import escape_rewriting
from orchestrator.types import JsonObject
from parley.simulator import Simulator
from parley.testing.memory import MemoryRecords
from tests.cases import for_each
from tests.domains.mailroom.services import Mailroom
from tests.trained import simulate
from tests.unit.res.hostile import PAYLOADS

ALLOWED = {"p", "br", "ul", "ol", "li"}


class Page(HTMLParser):
    """The elements and the text of an HTML fragment, as a browser sees them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.other: list[str] = []
        self.text = ""
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def handle_decl(self, decl: str) -> None:
        self.other.append(decl)

    def handle_pi(self, data: str) -> None:
        self.other.append(data)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)


class HostilePage(Mailroom):
    """A tool that returns hostile text."""

    def __init__(self, said: str) -> None:
        super().__init__(ServiceContext(MemoryRecords(), {}))
        self.said = said

    async def read_page(self) -> JsonObject:
        return {"text": self.said}

    async def list_salaries(self) -> JsonObject:
        return {"rows": [{"person": self.said, "salary": 1}]}


TOOL = HostilePage("")


@cache
def mailroom() -> Simulator:
    return simulate("mailroom", services={"Mailroom": TOOL})


def assert_harmless(message: str, said: str) -> None:
    """Check that the message shows the words and contains only the expected elements, in full Markdown."""
    assert squeeze(said) in squeeze(to_plain(message))
    page = Page(MarkdownIt("commonmark").render(message))
    assert {name for name, _ in page.elements} <= ALLOWED
    assert all(not names or (name, names) == ("ol", ("start",)) for name, names in page.elements)
    assert page.other == []
    assert squeeze(html.unescape(said)) in squeeze(page.text)


def squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_there_are_fifty() -> None:
    assert len(set(PAYLOADS)) == 50


@for_each("said", PAYLOADS)
async def test_what_a_tool_returned_is_text(said: str) -> None:
    simulator = mailroom()
    TOOL.said = said

    page = await simulator.converse().say("read the web page")
    rows = await simulator.converse().say("list the salaries")

    assert (page["completed"], rows["completed"]) == (["read_page"], ["list_salaries"])
    assert_harmless(page["reply"], said)
    assert_harmless(rows["reply"], said)
    # Except in the message, text is plain, so it is unchanged.
    assert page["frame"]["block"]["items"][0]["value"] == said
    assert rows["frame"]["data"][0]["person"] == said


@for_each("said", PAYLOADS)
async def test_what_a_user_wrote_is_text(said: str) -> None:
    """As a quoted unknown name, and as the message itself."""
    talk = mailroom().converse()
    await talk.say("send a mail")

    turn = await talk.act("fill_slot", {"slot": "recipient", "value": said})
    spoken = await talk.say(said)

    assert_harmless(turn["reply"], said[:60])  # long names are shortened
    assert_harmless(spoken["reply"], "")
    assert spoken["text"] == said


@for_each("said", PAYLOADS)
def test_what_a_model_wrote_is_text(said: str) -> None:
    assert_harmless(escape_rewriting(said), said)
    assert_harmless(escape_rewriting(f"Here you are:\n- {said}\n- and more"), said)
