"""CO-2: models that fail, are unreachable, are killed and return, below the prompt engineer."""

import asyncio
from dataclasses import replace

import pytest

from orchestrator.adapters.models.chat import LibraryChat
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.errors import (
    CircuitOpen,
    ModelFailed,
    ModelNotAllowed,
    ModelOverloaded,
    ModelRejected,
    ModelTimedOut,
    ModelUnknown,
    RateLimited,
)
from orchestrator.models.breaker import BreakerPolicy
from orchestrator.models.calling import Pacing
from orchestrator.models.config import ModelChoice, Timeouts
from orchestrator.models.engineer import PromptEngineer
from orchestrator.models.retries import RetryPolicy
from parley.testing.scripted_model import Answer, Drop, Fail, Hang, Rule, Script, ScriptedModel
from tests.cases import for_each
from tests.integration.models.bench import (
    CONFIG,
    GOOD,
    PROMPTS,
    Bench,
    Clock,
    Waits,
    bench,
    calling,
    quiet_board,
    script,
)


@for_each(
    ("reply", "error"),
    [
        (Fail(500), ModelFailed),
        (Fail(502), ModelFailed),
        (Fail(503), ModelFailed),
        (Fail(529), ModelOverloaded),
        (Fail(429), RateLimited),
        (Drop(), ModelFailed),
        (Fail(400), ModelRejected),
        (Fail(422), ModelRejected),
        (Fail(401), ModelNotAllowed),
        (Fail(404), ModelUnknown),
    ],
    ids=repr,
)
async def test_each_failure_has_its_name_and_its_number_of_tries(reply, error):
    async with bench(script(reply)) as at:
        with pytest.raises(error):
            await at.word()

    # An unspecific refusal is retried once with the smallest possible request.
    tries = {ModelFailed: 3, ModelOverloaded: 3, RateLimited: 3, ModelRejected: 2}
    assert len(at.model.requests) == tries.get(error, 1)
    told = at.calls()[0]
    assert (told["outcome"], told["model"], told["asked"]) == (error.code, None, "small")


async def test_silence_is_bounded_also_when_the_whole_answer_may_take_long():
    config = replace(CONFIG, retries=RetryPolicy(attempts=1))

    async with bench(script(Hang()), config, silence_s=0.1) as at:
        with pytest.raises(ModelTimedOut):
            await at.hear()


async def test_a_port_where_nobody_listens_is_a_failure_and_not_a_surprise():
    async with bench(script()) as at:
        at.model.stop()
        with pytest.raises(ModelFailed, match="cannot be reached"):
            await at.word()


async def test_after_failures_of_every_passing_kind_the_answer_comes():
    config = replace(CONFIG, timeouts=Timeouts(1.5), retries=replace(CONFIG.retries, attempts=5))
    replies = script(Fail(500), Fail(429), Drop(), Hang(), Answer(json=GOOD))

    async with bench(replies, config, breaker=BreakerPolicy(threshold=10)) as at:
        assert await at.think() == GOOD

    codes = [code for _, code in at.calls()[0]["failures"]]
    assert codes == ["model_failed", "model_rate_limited", "model_failed", "model_timed_out"]


async def test_a_turn_without_time_left_is_not_kept_waiting():
    """The deadline bounds waits, retries and the fallback."""
    clock = Clock()
    waits = Waits()
    pacing = Pacing(clock=clock, sleep=waits)

    async with bench(script(Fail(429, retry_after_s=0.9)), pacing=pacing) as at:
        with pytest.raises(RateLimited):
            await at.word(calling(deadline=clock.now + 0.5))
        with pytest.raises(ModelTimedOut):
            await at.word(calling(deadline=clock.now))

    assert waits.seconds == []
    assert len(at.model.requests) == 1


async def test_a_turn_s_deadline_cuts_a_request_short():
    clock = Clock()
    config = replace(CONFIG, retries=RetryPolicy(attempts=1))

    async with bench(script(Hang()), config, pacing=Pacing(clock=clock)) as at:
        with pytest.raises(ModelTimedOut, match=r"after 0\.25 s"):
            await at.word(calling(deadline=clock.now + 0.25))


async def test_the_fallback_answers_when_the_first_model_does_not():
    config = replace(CONFIG, fallback=ModelChoice("spare"))
    playing = Script(
        rules=(Rule(model="small", replies=(Fail(500),)), Rule(model="spare", replies=(Answer(json=GOOD),)))
    )

    async with bench(playing, config) as at:
        assert await at.think() == GOOD
        assert await at.think() == GOOD

        assert [request.model for request in at.model.requests].count("spare") == 2
        assert [(circuit["model"], circuit["state"]) for circuit in at.circuits()] == [("small", "open")]
        assert at.engineer.available
        sent = len(at.model.requests)
        assert await at.think() == GOOD

    assert [request.model for request in at.model.requests[sent:]] == ["spare"]
    assert at.calls()[-1]["failures"] == [["small", "model_circuit_open"]]


async def test_each_prompt_may_have_its_own_model_and_provider():
    config = replace(CONFIG, per_prompt={"nlu_think": ModelChoice("clever", "elsewhere")})

    with ScriptedModel(script(Answer(json=GOOD))) as here, ScriptedModel(script(Answer(json=GOOD))) as there:
        chats = {
            "default": LibraryChat(Endpoint(base_url=here.base_url)),
            "elsewhere": LibraryChat(Endpoint(base_url=there.base_url)),
        }
        at = Bench(here, PromptEngineer(chats, PROMPTS, config, quiet_board()), [])
        await at.think()
        await at.word()
        for chat in chats.values():
            await chat.aclose()

    assert [request.model for request in there.requests] == ["clever"]
    assert [request.model for request in here.requests] == ["small"]


async def test_killed_and_back_on_the_same_port():
    """The breaker opens, is visible, blocks calls, probes and closes: NLU can use `available`."""
    clock = Clock()
    waits = Waits()

    async with bench(script(Answer(json=GOOD)), pacing=Pacing(clock=clock, sleep=waits)) as at:
        assert await at.think() == GOOD
        assert at.engineer.available

        at.model.stop()
        for _ in range(2):
            with pytest.raises(ModelFailed):
                await at.think()
        assert not at.engineer.available
        (circuit,) = at.circuits()
        assert (circuit["state"], circuit["failures"], circuit["retry_in_s"]) == ("open", 4, 30)
        with pytest.raises(CircuitOpen):
            await at.think()

        clock.now += 30
        assert at.engineer.available
        with pytest.raises(ModelFailed):
            await at.think()
        assert not at.engineer.available, "a probe that fails is not repeated"

        at.model.start()
        clock.now += 30
        assert await at.think() == GOOD

    assert [circuit["state"] for circuit in at.circuits()] == [
        "open",
        "half_open",
        "open",
        "half_open",
        "closed",
    ]


async def test_a_refused_request_does_not_open_the_breaker():
    async with bench(script(Fail(400))) as at:
        for _ in range(6):
            with pytest.raises(ModelRejected):
                await at.word()
        assert at.engineer.available


async def test_a_call_that_is_cancelled_leaves_breaker_and_budget_as_they_were():
    call = calling()

    async with bench(script(Hang()), breaker=BreakerPolicy(threshold=1)) as at:
        asking = asyncio.create_task(at.word(call))
        while not at.model.requests:
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert at.engineer.available

    assert call.spending.spent.tokens == 0
    assert at.calls()[0]["outcome"] == "CancelledError"
