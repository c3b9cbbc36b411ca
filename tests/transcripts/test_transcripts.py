"""Whole conversations through the real pipeline with System 1, over stores in memory.

Each YAML file holds conversations in the form of a domain's `evaluations/`; a file's first part names
its domain: ``travel.corrections.yaml``. The evaluations that domains bring along are run as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.domain.schema import ConversationEntry, EvaluationFile, ExpectEntry, TurnEntry
from orchestrator.nlu.readers.system1 import System1
from orchestrator.simulator import START, Simulator
from orchestrator.telemetry import Signal, SignalType

HERE = Path(__file__).parent
DOMAINS = HERE.parents[1] / "domains"
FILES = [*sorted(HERE.glob("*.yaml")), *sorted(DOMAINS.glob("*/evaluations/*.yaml"))]
AT_LEAST = 60


def read(path: Path) -> EvaluationFile:
    return EvaluationFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def domain_of(path: Path) -> str:
    return path.parents[1].name if path.parent.name == "evaluations" else path.name.partition(".")[0]


def conversations() -> Iterator[Any]:
    for path in FILES:
        for conversation in read(path).conversations:
            domain = domain_of(path)
            yield pytest.param(domain, conversation, id=f"{domain} {path.stem}: {conversation.name}")


@cache
def trained(domain: str) -> tuple[LoadedDomain, System1]:
    """Loading and training once is enough: neither is changed by a conversation."""
    place = HERE / "domains" / domain
    loaded = load_domain(place if place.is_dir() else domain)
    return loaded, System1.for_domain(loaded.domain)


@pytest.mark.parametrize(("domain", "conversation"), list(conversations()))
async def test_conversation_goes_as_written(domain: str, conversation: ConversationEntry) -> None:
    loaded, system1 = trained(domain)
    simulator = Simulator.of(
        loaded, sections=conversation.config, system1=system1, at=beginning_of(conversation)
    )
    await go_through(conversation, simulator)


def beginning_of(conversation: ConversationEntry) -> datetime:
    return datetime.fromisoformat(conversation.now).replace(tzinfo=UTC) if conversation.now else START


async def go_through(conversation: ConversationEntry, simulator: Simulator) -> None:
    """Take every turn of a conversation and compare it with what is expected."""
    talk = simulator.converse()
    remembered: dict[str, str] = {}
    offered: list[dict[str, Any]] = []
    for number, entry in enumerate(conversation.turns, start=1):
        seen = len(simulator.signals)
        if entry.action is not None:
            turn = await talk.act(
                entry.action["name"], entry.action.get("payload") or payload_of(entry, offered)
            )
        else:
            turn = await talk.say(insert(entry.user or "", remembered))
        faults = differences(entry.expect, turn, simulator.signals[seen:])
        assert not faults, f"turn {number}, {entry.user or entry.action}: {faults}\nreply: {turn['reply']}"
        assert turn["status"] == "done"
        remember(turn, remembered)
        offered = turn["actions"]


def payload_of(entry: TurnEntry, offered: list[dict[str, Any]]) -> dict[str, Any]:
    """Click what the last answer offered under this name."""
    return next((one["payload"] for one in offered if one["name"] == (entry.action or {})["name"]), {})


def insert(text: str, remembered: dict[str, str]) -> str:
    """Replace ``<booking_ref>`` by the value that an earlier answer gave."""
    return re.sub(r"<(\w+)>", lambda name: remembered[name[1]], text)


def remember(turn: dict[str, Any], remembered: dict[str, str]) -> None:
    data = (turn["frame"] or {}).get("data")
    if isinstance(data, dict):
        remembered.update({name: str(value) for name, value in data.items()})


def differences(expect: ExpectEntry, turn: dict[str, Any], signals: list[Signal]) -> list[str]:
    """What is not as it should be, in words."""
    stack = [flow["dact"] for flow in turn["flows"]]
    last = stack[-1] if stack else (turn["completed"] or [None])[-1]
    found = {
        "kind": next((s.payload["kind"] for s in signals if s.type is SignalType.PREDICTION), None),
        "flow": last,
        "flows": tuple(stack),
        "completed": tuple(turn["completed"]),
        "tools": tuple(tool["tool_id"] for tool in turn["tools"]),
        "ambiguity": (turn["ambiguity"] or {}).get("level", "none"),
    }
    faults = [
        f"{name} is {found[name]!r}, not {wanted!r}"
        for name in found
        if (wanted := getattr(expect, name)) is not None and wanted != found[name]
    ]
    slots = turn["flows"][-1]["slots"] if turn["flows"] else {}
    faults += [
        f"slot {name} is {slots.get(name)!r}, not {value!r}"
        for name, value in expect.slots.items()
        if slots.get(name) != value
    ]
    if expect.answer is not None and not re.search(expect.answer, turn["reply"]):
        faults.append(f"the answer does not match {expect.answer!r}")
    if expect.not_answer is not None and re.search(expect.not_answer, turn["reply"]):
        faults.append(f"the answer matches {expect.not_answer!r}")
    broken = [s.payload for s in signals if s.source == "agent" and s.payload.get("ok") is False]
    return faults + [f"a step broke: {payload}" for payload in broken]


def test_there_are_enough_conversations() -> None:
    """Each kind of message, depth strategy, level of ambiguity and digression needs its own."""
    names = [(path, conversation.name) for path in FILES for conversation in read(path).conversations]
    assert len(names) == len(set(names))
    assert len(names) >= AT_LEAST


def test_every_conversation_expects_something() -> None:
    for path in FILES:
        for conversation in read(path).conversations:
            assert any(turn.expect != ExpectEntry() for turn in conversation.turns), conversation.name
