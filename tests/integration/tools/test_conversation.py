"""PX-8, RT-9: a whole conversation over an HTTP endpoint: executed once, and found after a lost answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from parley.simulator import Simulator
from tests.integration.tools.web import Web
from tests.processes.http import serve
from tests.unit.domain.factories import SERVICES, write_domain

ONTOLOGY = """\
flows:
  order_tea:
    intent: Transform
    description: Order tea
    examples: [order tea, I would like some tea, "please order {kind} tea", bring me tea, "{kind} tea please"]
    outputs: [order]
    slots:
      kind: {type: category, values: [green, black], priority: required, prompt: "Green or black?"}
    tools: [{tool_id: order_create}]
  greet_shop:
    intent: Read
    description: Ring the bell
    examples: [ring the bell, please ring, ding the bell, is there a bell]
    tools: [{tool_id: bell_ring}]
"""

TOOLS = """\
tools:
  order_create:
    http: {url: "URL/ORDER", method: POST}
    status_query: order_status
    input_schema: {type: object, required: [kind], properties: {kind: {type: string}}}
    output_schema: {type: object, required: [order], properties: {order: {type: string}}}
  order_status:
    http: {url: "URL/order_status"}
    idempotent: true
    input_schema: {type: object, required: [idempotency_key], properties: {idempotency_key: {type: string}}}
    output_schema: {type: object}
  bell_ring:
    http: {url: "URL/echo/bell"}
    idempotent: true
    input_schema: {type: object, properties: {}}
    output_schema: {type: object}
"""


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    with serve(web.application()) as web.url:
        yield web


@asynccontextmanager
async def simulate(
    folder: Path, web: Web, *, order: str = "order", status_query: bool = True
) -> AsyncIterator[Simulator]:
    tools = TOOLS.replace("URL", web.url).replace("ORDER", order)
    if not status_query:
        tools = tools.replace("    status_query: order_status\n", "")
    files = {
        "ontology.yaml": ONTOLOGY,
        "tools.yaml": tools,
        "services.py": SERVICES,
        "domain.yaml": "network: {private_networks: [127.0.0.0/8]}",
    }
    simulator = Simulator.of(write_domain(folder, files))
    try:
        yield simulator
    finally:
        await simulator.close()


async def test_an_order_whose_answer_was_lost_is_found_by_its_key(tmp_path: Path, web: Web):
    web.statuses = [500]
    async with simulate(tmp_path, web) as simulator:
        turn = await simulator.converse().say("order green tea")

    assert list(web.effects.values()) == [1]
    assert [(used["tool_id"], used["status"]) for used in turn["tools"]] == [
        ("order_create", "unknown"),
        ("order_status", "ok"),
    ]
    assert [asked.method for asked in web.asked] == ["POST", "GET"]


async def test_a_booking_that_is_answered_by_a_redirect_is_found_by_its_key(tmp_path: Path, web: Web):
    """RT-33: 303 has the URL of the result, so the status query resolves the outcome."""
    async with simulate(tmp_path, web, order="booking") as simulator:
        turn = await simulator.converse().say("order green tea")

    assert list(web.effects.values()) == [1]
    assert [used["status"] for used in turn["tools"]] == ["unknown", "ok"]
    assert turn["completed"] == ["order_tea"]


@pytest.mark.parametrize("first", [303, 500])
async def test_who_tries_again_while_the_first_call_is_at_work_books_once(
    tmp_path: Path, web: Web, first: int
):
    """RT-33: 409 for the second call doesn't reveal the first call's outcome, so no third call has a new key."""
    web.statuses = [] if first == 303 else [first]
    async with simulate(tmp_path, web, order="booking", status_query=False) as simulator:
        talk = simulator.converse()
        turns = [await talk.say(text) for text in ("order green tea", "yes", "yes", "no")]

    assert list(web.effects.values()) == [1]
    assert len({asked.headers["idempotency-key"] for asked in web.asked}) == 1
    assert [used["status"] for turn in turns for used in turn["tools"]] == ["unknown"] * 3
