"""Repairs of broken sessions with the gateway's calls alone, and checks of the stored results."""

from __future__ import annotations

from typing import Any

import orjson

from orchestrator.dialogue.changes.repair import repair
from orchestrator.dialogue.state import DialogueState
from orchestrator.types import JsonObject
from tests.unit.gateway.repairs.broken_sessions import WHY, Site, Ticket


async def repair_one(site: Site, ticket: Ticket) -> list[str]:
    """Repair a session as an operator would, with the gateway's calls alone. Return the problems."""
    trouble = await site.look(ticket.session)
    kinds = {fit["repair"]["kind"] for fit in trouble["fits"]}
    steps: list[list[JsonObject]] = [[{"kind": kind}] for kind in ("release",) if kind in kinds]
    steps += [[want] for want in ticket.wants]
    for repairs in steps:
        path = f"/v1/sessions/{ticket.session}/repairs/preview"
        preview = (await site.http.post(path, json={"repairs": repairs})).json()
        if preview.get("refused") != []:
            return [f"{ticket.kind}: the preview refuses {repairs}: {preview}"]
        early = await site.post(ticket.session, repairs, preview["epoch"] + 1)
        made = await site.post(ticket.session, repairs, preview["epoch"])
        ticket.posts += 1
        if (early.status_code, made.status_code) != (409, 200):
            return [f"{ticket.kind}: {repairs} gave {early.text} and {made.text}"]
        told = made.json()
        if (told["done"], told["reply"]) != (preview["done"], preview["told"]):
            return [f"{ticket.kind}: {repairs} did {told}, and not {preview}"]
    await site.runner.run(ticket.session)
    return []


async def judge(site: Site, ticket: Ticket, by: str) -> list[str]:
    """Return the faults in a repaired session's state, ledger, history and audit."""
    found: list[str] = []
    session = await site.get(f"/v1/sessions/{ticket.session}")
    body = session["state"]
    state = DialogueState.from_dict(body, site.simulator.loaded.domain.flows)
    there = {"", *(flow.flow_id for flow in state.stack.flows)}
    found += [*state.stack.check(), *repair(body)[1]]
    found += [
        f"a question of {one.flow_id}" for one in state.ambiguity.open if (one.flow_id or "") not in there
    ]
    if not ticket.expects(body):
        found.append("it is not as was wanted")
    if len(site.airline.calls) != ticket.calls:
        found.append("a repair has called a tool")
    events = await read_events(site, ticket.session)
    signed = [event["payload"] for event in events if event["type"] == "repaired"]
    if len(signed) != ticket.posts or any((one["by"], one["why"]) != (by, WHY) for one in signed):
        found.append(f"{ticket.posts} repairs were made, and {len(signed)} are signed")
    lines = await site.get(f"/v1/sessions/{ticket.session}/history?limit=1000")
    told = [one for one in signed if any(repair["kind"] in _TOLD for repair in one["repairs"])]
    if len([line for line in lines if line["role"] == "operator"]) != len(told):
        found.append("the history does not say who repaired it")
    if (await site.look(ticket.session))["wrong"]:
        found.append("something is still wrong")
    return [f"{ticket.kind}: {one}" for one in found]


_TOLD = {"drop", "mark", "take_over", "say", "hand_back"}


async def read_events(site: Site, session: str) -> list[Any]:
    answer = await site.http.get(f"/v1/sessions/{session}/events?follow=false")
    lines = answer.text.splitlines()
    return [orjson.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


async def goes_on(site: Site, ticket: Ticket) -> list[str]:
    """Let the user confirm the offer, if any, which must happen at most once. Return the faults."""
    before = [call for call in site.airline.calls if call == ticket.session]
    turn = await site.say(ticket.session, "yes")
    found = [] if turn.get("status") == "done" and turn["reply"] else [f"a yes gave {turn}"]
    made = len([call for call in site.airline.calls if call == ticket.session]) - len(before)
    if made != (ticket.kind == "unknown_and_not_done"):
        found.append(f"a yes made {made} bookings")
    if ticket.kind == "unknown_and_done" and (ticket.booked or {})["booking_ref"] not in turn["reply"]:
        found.append(f"the booking is not told: {turn['reply']}")
    return [f"{ticket.kind}: {one}" for one in found]
