"""Recovery of a turn from a failing or uncertain skill, and the output meanwhile."""

from __future__ import annotations

from parley.testing.scripted_model import Answer, Fail, Rule
from tests.transcripts.skills.skilled import answer, call, finish, talk


async def test_partial_data_are_shown_with_a_warning() -> None:
    """PX-13: the flow stays Active, and the user can try again."""
    part = finish("failure", message="The second table did not answer.", data={"answer": "7"})
    async with talk(part, answer(answer="7 and 9")) as t:
        turn = await t.say("ask the data")

        assert turn["reply"].startswith("Answer: 7\n\nThe second table did not answer.")
        assert turn["frame"]["warning"] == "The second table did not answer."
        assert turn["flags"]["has_issues"]
        assert [flow["state"] for flow in turn["flows"]] == ["Active"]
        assert (await t.say("yes"))["reply"] == "Answer: 7 and 9"


async def test_a_skill_that_is_uncertain_is_run_once_more() -> None:
    """PX-16, first rung: its notes are available to the second run."""
    note = call("memory_manager", operation="write", text="Stock is what matters.")
    unsure = finish("uncertain", message="Which year?")
    read = call("memory_manager", operation="read")
    async with talk(note, unsure, read, answer(answer="all years")) as t:
        turn = await t.say("ask the data")

        assert turn["reply"] == "Answer: all years"
        assert t.rungs == ["retry"]
        assert "Stock is what matters." in t.told()


async def test_values_that_a_re_route_reads_are_kept() -> None:
    """NL-5, AG-6: values that the model finds for the other flow are not requested again."""
    found = {
        "flows": [{"dact": "ask_data", "score": 0.9}],
        "slots": [{"name": "topic", "value": "the sums"}],
        "reason": "the data know it",
    }
    task = {"kind": "task", "intent": "Act", "flows": [{"dact": "compute_number", "score": 0.9}]}
    think = Rule(prompt="nlu_think", replies=(Answer(json=task),))
    contemplate = Rule(prompt="nlu_contemplate", replies=(Answer(json=found),))
    unsure = finish("uncertain", message="Which numbers?")
    async with talk(
        unsure, unsure, answer(answer="7"), rules=(think, contemplate), nlu={"mode": "auto"}
    ) as t:
        turn = await t.say("do the sums")

        assert t.rungs == ["retry", "reroute"]
        assert turn["completed"] == ["ask_data"]
        [session] = t.simulator.store.sessions.values()
        assert b'"the sums"' in (session.state or b"")


async def test_no_other_flow_changes_things_instead_of_the_one_that_was_wanted() -> None:
    """PX-16: rerouting only uses flows without side effects, and declared flows."""
    async with talk(finish("uncertain", message="Which numbers?")) as t:
        turn = await t.say("compute a number")

        assert "order_part" not in [flow["dact"] for flow in turn["flows"]]
        assert turn["ambiguity"]["level"] != "confirmation"


async def test_at_last_the_user_is_asked_and_any_words_answer() -> None:
    """PX-16, last rung: the reason is the question; the skill reads the answer."""
    unsure = finish("uncertain", message="Do you mean this year or all years?")
    async with talk(unsure, unsure, answer(value=9), resilience={"max_recovery_attempts": 0}) as t:
        turn = await t.say("compute a number")

        assert turn["reply"] == "Do you mean this year or all years?"
        assert [flow["state"] for flow in turn["flows"]] == ["Active"]
        assert turn["frame"] is None
        assert t.rungs[-1] == "escalate"

        turn = await t.say("every single one please")

        assert turn["completed"] == ["compute_number"]
        assert t.asked[-1].data["utterance"] == "every single one please"


async def test_a_yes_or_a_no_answers_what_a_skill_asked() -> None:
    """PX-16: the skill sees its own question before the answer."""
    unsure = finish("uncertain", message="Shall all years count?")
    replies = (unsure, unsure, unsure, unsure, answer(value=9))
    async with talk(*replies, resilience={"max_recovery_attempts": 0}) as t:
        await t.say("compute a number")
        assert (await t.say("no"))["reply"] == "Shall all years count?"
        turn = await t.say("yes")

        assert turn["completed"] == ["compute_number"]
        assert "Shall all years count?" in t.asked[-1].data["history"]
        assert t.asked[-1].data["utterance"] == "yes"


async def test_a_model_that_is_down_is_a_failure_of_the_skill() -> None:
    """PX-6, UI-2."""
    async with talk(Fail(500), resilience={"backoff_base_s": 0}) as t:
        turn = await t.say("ask the data")

        assert turn["status"] == "done"
        assert turn["flags"]["degraded"]
        assert "Shall I try again?" in turn["reply"]
