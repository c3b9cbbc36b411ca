"""Random conversations: every turn is answered and valid, for any messages and clicks in any order.

The short form takes seconds; the long form is marked slow.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from orchestrator.telemetry import SignalType
from parley.simulator import Conversation
from tests.trained import simulate

SAID = {
    "travel": """Book a flight to Madrid|Oslo|tomorrow|on Monday|check my booking|AB12C3|list my bookings
        |change my booking|change my booking to Wednesday|actually from Bergen|no, I meant Tuesday|business class
        |add 2 bags|window seat please|is SK1465 on time|show flights from Oslo to Rome on Friday|book it
        |cancel my booking|for 3 passengers|400 passengers|30 February|change the date|in the morning
        |not Madrid, Lisbon|yes but in business|no, from Paris|can I bring my dog|San Jose|from London to London""",
    "desk": """order toner|order toner for printer one|printer two|the hall|hall south|wipe disk of printer one
        |send my mail report|check the queue|check the ink|write a poem|change the printer|not that""",
}
ALWAYS = """yes|no|cancel|never mind|the first one|2|help|why do you ask|what do you still need|hello|thanks
    |go back|continue|cancel everything|blargh|nothing|stop|🛫|{{ 7*7 }}|<b>hi</b>|leave it as it is|undo it"""
CLICKED = ["confirm", "deny", "approve", "cancel_flow", "resume_flow", "help", "status", "keep_effect",
           "repeat_effect", "compensate_effect", "select_option", "fill_slot", "change_slot", "nonsense"]  # fmt: skip
VARIANTS: list[dict[str, Any]] = [
    {},
    {"flow_management": {"max_stack_depth": 2, "on_limit_reached": "ask_user"}},
    {"flow_management": {"max_stack_depth": 2, "on_limit_reached": "reject_new"}},
    {"flow_management": {"max_stack_depth": 1, "on_limit_reached": "cancel_oldest", "abandon_after_s": 60}},
    {"approvals": {"expires_s": 60}},
]
OUR_OWN = {"prepare", "validate", "action", "trifecta_gate"}
"""Failed checks that a user's messages may cause."""


def texts(domain: str) -> list[str]:
    return [text.strip() for text in f"{SAID[domain]}|{ALWAYS}".split("|")]


async def take_any_turn(
    talk: Conversation, last: dict[str, Any] | None, chance: random.Random, domain: str
) -> Any:
    roll = chance.random()
    if roll < 0.2 and last is not None and last["actions"]:
        offered = chance.choice(last["actions"])
        return await talk.act(offered["name"], offered["payload"])
    if roll < 0.3:
        return await talk.act(chance.choice(CLICKED), {"index": 0, "slot": "date", "value": "2026-12-01"})
    return await talk.say(chance.choice(texts(domain)))


async def converse(domain: str, seed: int, turns: int) -> None:
    chance = random.Random(seed)
    simulator = simulate(domain, sections=VARIANTS[seed % len(VARIANTS)])
    talk, last = simulator.converse(), None
    for number in range(1, turns + 1):
        seen = len(simulator.signals)
        last = await take_any_turn(talk, last, chance, domain)
        failed = [
            (signal.source, signal.payload)
            for signal in simulator.signals[seen:]
            if signal.type is SignalType.CHECK
            and signal.payload.get("ok") is False
            and signal.payload["check"] not in OUR_OWN
        ]
        assert (last["status"], failed) == ("done", []), f"seed {seed}, turn {number}: {last['reply']}"
        assert last["reply"].strip()
        assert last["epoch"] == number


@pytest.mark.parametrize(
    ("seeds", "turns"),
    [(range(5), 30), pytest.param(range(100, 200), 60, marks=pytest.mark.slow)],
    ids=["short", "long"],
)
@pytest.mark.parametrize("domain", ["travel", "desk"])
async def test_every_turn_is_answered_and_sound(domain: str, seeds: range, turns: int) -> None:
    """AG-4, PX-15, RS-6, FS-8."""
    for seed in seeds:
        await converse(domain, seed, turns)
