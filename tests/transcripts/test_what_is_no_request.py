"""Forbidden, reported, hypothetical and past requests start nothing (NL-8)."""

from __future__ import annotations

import json

from parley.simulator import Simulator
from tests.trained import trained
from tests.transcripts.not_requests import NOT_REQUESTS


async def test_what_is_no_request_starts_nothing() -> None:
    assert len(NOT_REQUESTS) > 200
    simulators = {
        name: Simulator.of(one[0], system1=one[1])
        for name in ("travel", "analytics")
        if (one := trained(name))
    }
    started: list[str] = []
    for domain, words in NOT_REQUESTS:
        talk = simulators[domain].converse()
        turn = await talk.say(words)
        state = json.loads(simulators[domain].store.sessions[talk.session_id].state or "{}")
        if state["stack"] or turn["tools"] or turn["completed"]:
            started.append(words)
    assert started == []
