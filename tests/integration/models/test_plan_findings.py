"""PL-2: the model gets the findings of background flows when it checks a plan."""

from __future__ import annotations

import orjson

from orchestrator.dialogue.records import Label
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.types import DEFAULT_TENANT
from tests.integration.models.test_plans_by_model import COUNTER, KEEP, MET, REQUEST, TONER, steps, talking

LEAK = "Printer Two leaks toner and has been taken out of service."


async def test_a_finding_is_put_to_the_model_with_its_labels() -> None:
    """PX-3: a plan that a model checks with untrusted text derives from this text."""
    async with talking(plan_decompose=steps(COUNTER, TONER), plan_replan=KEEP, plan_complete=MET) as talk:
        await talk.say(REQUEST)
        simulator, session_id = talk.conversation.simulator, talk.conversation.session_id
        labels = (Label.UNTRUSTED.value,)
        entry = Entry("find_faults", "test", EntryKind.FINDING, simulator.now, LEAK, labels=labels)
        await simulator.scratchpad.put(DEFAULT_TENANT, session_id, (entry,))
        await talk.say("yes")
        checked = talk.model.requests[-1]
        state = orjson.loads(simulator.store.sessions[session_id].state or "{}")
    assert checked.prompt_id == "plan_complete"
    assert LEAK in checked.data["notes"]
    assert Label.UNTRUSTED.value in {source["label"] for source in state["labels"]}
