"""CO-2, NL-2: every turn ends with an answer despite model failures, without suggesting hopeless retries."""

import json

from parley.testing.scripted_model import Answer, Fail, Raw, Reply, Rule, Script
from tests.cases import for_each
from tests.integration.models.quirks import completion, openai_error, sent
from tests.integration.models.staging import staged

TRIP = "advise me on a trip from Oslo to Madrid next Friday"
TRIP_SLOTS = {"origin": "Oslo", "destination": "Madrid", "date": "2026-11-27"}
AGAIN = "Shall I try again?"
APOLOGY = "something went wrong on my end"
CHAT = json.dumps({"kind": "chitchat", "flows": [], "slots": {}})
THOUGHT = completion({"role": "assistant", "content": ""})
THOUGHT["choices"][0]["finish_reason"] = "length"

FINAL = {
    "model_rejected": sent(openai_error("Invalid schema", code="invalid_function_parameters"), 400),
    "model_quota_exceeded": sent(openai_error("quota", code="insufficient_quota"), 429),
    "model_not_allowed": sent(openai_error("key", code="invalid_api_key"), 401),
    "model_unknown": sent(openai_error("no such model", code="model_not_found"), 404),
    "model_filtered": sent(openai_error("filtered", code="content_filter"), 400),
    "model_refused": sent(completion({"role": "assistant", "content": None, "refusal": "No."})),
    "model_context_exceeded": sent(openai_error("long", code="context_length_exceeded"), 400),
    "model_cut_off": sent(THOUGHT),
}  # fmt: skip


@for_each("problem", FINAL)
async def test_no_second_try_is_offered_after_what_is_final(problem: str) -> None:
    async with staged(Script(default=FINAL[problem])) as stage:
        turn = await stage.simulator.converse().say(TRIP)

    assert turn["status"] == "done"
    assert AGAIN not in turn["reply"]
    assert APOLOGY not in turn["reply"]
    assert turn["reply"]
    assert turn["flags"]["degraded"] is True


async def test_a_second_try_is_offered_after_what_may_pass() -> None:
    slots = [{"name": name, "value": value} for name, value in TRIP_SLOTS.items()]
    meant = Answer(json={"kind": "task", "flows": [{"dact": "trip_advice", "score": 1.0}], "slots": slots})
    script = Script(
        rules=(Rule(prompt="nlu_think", replies=(meant,)),), default=sent(openai_error("down"), 500)
    )
    async with staged(script) as stage:
        turn = await stage.simulator.converse().say(TRIP)

    assert AGAIN in turn["reply"]


WRONG: dict[str, Reply] = {
    "numbers": sent(completion({"role": 3, "content": 4})),
    "nulls": sent(completion({"role": None, "content": None, "tool_calls": None}, usage=None, id=None, model=None)),
    "lists": sent(completion({"role": [], "content": [], "tool_calls": [[]]})),
    "no choices": sent(completion(choices=[])),
    "null choices": sent(completion(choices=[None])),
    "a string": sent("hello"),
    "half a letter": Raw(b'{"choices": [{"message": {"content": "\xc3"}}]}'),
    "calls of nothing": sent(completion({"content": None, "tool_calls": [{}, {"function": {}}, {"function": None}]})),
    "broken JSON": sent(completion({"content": '{"kind": "task", "flows": [{"dact'})),
    "a thought alone": sent(completion({"content": "<think>Let me see"})),
    "usage of text": sent(completion({"content": CHAT}, usage="7")),
    "busy for long": Fail(429, retry_after_s=120),
    "HTML": Raw("<html>Hotel Wi-Fi</html>", "text/html"),
}  # fmt: skip


@for_each("name", WRONG)
async def test_nothing_that_an_endpoint_sends_ends_a_turn_in_the_general_apology(name: str) -> None:
    async with staged(Script(default=WRONG[name]), nlu={"mode": "system2"}) as stage:
        talk = stage.simulator.converse()
        turns = [await talk.say(said) for said in ("hello there", "is SK3444 on time?", TRIP)]

    for turn in turns:
        assert turn["status"] == "done"
        assert turn["reply"]
        assert APOLOGY not in turn["reply"]
