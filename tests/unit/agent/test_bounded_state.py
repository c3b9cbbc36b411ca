"""ST-3, RT-19: the working state is bounded, even in very long conversations."""

from __future__ import annotations

import gc

import orjson
import pytest

from orchestrator.memory.notes import AT_HAND
from tests.trained import converse, simulate

ROUND = ("Book a flight from Oslo to Madrid tomorrow", "yes", "cancel my booking", "yes", "hello", "help")


@pytest.mark.parametrize("turns", [150, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_the_state_stops_growing(turns: int):
    simulator = simulate("travel", sections={"memory": {"max_trace_entries": 20}})
    talk = simulator.converse()
    sizes: list[int] = []
    while len(sizes) * len(ROUND) < turns:
        for text in ROUND:
            turn = await talk.say(text)
            assert turn["status"] == "done"
        raw = simulator.store.sessions[talk.session_id].state
        assert raw is not None
        sizes.append(len(raw))
    state = orjson.loads(simulator.store.sessions[talk.session_id].state or b"")

    assert len(state["messages"]) == 50
    assert len(state["trace"]) == 20
    assert len(state["completed"]) == 10
    assert {note["flow_id"] for note in state["effects"]} <= {flow["flow_id"] for flow in state["completed"]}
    assert sum(len(flow.get("progress", {}).get("scratchpad", ())) for flow in state["completed"]) == AT_HAND
    after_a_hundred = sizes[100 // len(ROUND) :]
    assert max(after_a_hundred) <= 1.02 * min(after_a_hundred)


async def test_a_turn_leaves_nothing_that_only_the_collector_frees():
    """RT-20: otherwise the garbage collector visits 20,000 objects every hundred turns."""
    talk = converse("travel")
    for text in ROUND:
        await talk.say(text)
    gc.collect()
    gc.disable()
    try:
        for text in ROUND:
            await talk.say(text)
        assert gc.collect() == 0
    finally:
        gc.enable()


async def test_only_as_much_is_kept_of_a_result_as_undoing_needs():
    """RT-12, ST-3"""
    simulator = simulate("travel")
    talk = simulator.converse()
    for text in ROUND[:2]:
        await talk.say(text)
    raw = simulator.store.sessions[talk.session_id].state
    assert raw is not None

    [effect] = orjson.loads(raw)["effects"]

    assert effect["compensation"] == "booking_cancel"
    assert list(effect["result"]) == ["booking_ref"]
