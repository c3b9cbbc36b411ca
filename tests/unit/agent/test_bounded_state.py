"""ST-3: the working state holds so much and no more, however long a conversation becomes."""

from __future__ import annotations

import orjson

from orchestrator.rehearsal import Rehearsal

ROUND = ("Book a flight from Oslo to Madrid tomorrow", "yes", "cancel my booking", "yes", "hello", "help")


async def test_the_state_stops_growing():
    rehearsal = Rehearsal.of("travel", sections={"memory": {"max_trace_entries": 20}})
    talk = rehearsal.converse()
    sizes: list[int] = []
    for _ in range(20):
        for text in ROUND:
            turn = await talk.say(text)
            assert turn["status"] == "done"
        raw = rehearsal.store.sessions[talk.session_id].state
        assert raw is not None
        sizes.append(len(raw))
    state = orjson.loads(raw)

    assert len(state["messages"]) == 50
    assert len(state["trace"]) == 20
    assert len(state["completed"]) == 10
    assert len(state["effects"]) <= 10
    assert max(sizes[10:]) <= 1.02 * min(sizes[10:])
