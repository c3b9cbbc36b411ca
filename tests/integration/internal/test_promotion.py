"""Only assessed statements are kept beyond a session (CO-4)."""

from __future__ import annotations

from orchestrator.dialogue.state import DialogueState
from orchestrator.ports.memory.preferences import Source
from orchestrator.types import DEFAULT_TENANT, SessionId, UserId, new_id
from tests.integration.internal.test_maintenance import House, spoken
from tests.integration.internal.test_memory_flows import note, run_graph


async def test_what_tools_returned_or_was_looked_up_is_no_statement_and_is_not_promoted(house: House) -> None:
    """Even if it repeats the user's words. Unassessed statements are not salient."""
    state = spoken(3)
    session_id = await house.session(state, user=new_id("user"))
    looked_up = note(
        "destination: Lisbon, flight: TP1", flow="gather_context", data={"about": "business", "times": 3}
    )
    repeated = note("I am looking for a flight to Lisbon, question 1.", data={"about": "business"})
    await house.ports.shared.scratchpad.put(DEFAULT_TENANT, session_id, (looked_up, repeated))

    assert (await run_graph(house, session_id))["promote_context"].closing == {"promoted": 0}


async def test_without_a_model_what_a_user_tells_of_themselves_for_good_is_noticed(house: House) -> None:
    user, state = new_id("user"), DialogueState.new(SessionId("any"))
    for text in (
        "Book a flight to Lisbon. My wife is allergic to nuts!",
        "Is my home airport Bergen?",
        "I am in a hurry",
        "By the way, my home airport is Bergen",
    ):
        state.begin_turn()
        state.say("user", text)
    session_id = await house.session(state.serialize(), user=user)
    await run_graph(house, session_id)
    known = await house.ports.stores.preferences.of_user(DEFAULT_TENANT, UserId(user))

    assert {one.text for one in known} == {
        "My wife is allergic to nuts!",
        "By the way, my home airport is Bergen",
    }
    assert all((one.source, one.origin["session_id"]) == (Source.INFERRED, session_id) for one in known)
