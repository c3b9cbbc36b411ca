"""CO-2: streamed answers of a model, complete and interrupted."""

from dataclasses import replace

import pytest

from orchestrator.errors import ModelFailed, ModelOutputInvalid, ModelTimedOut
from orchestrator.models.config import Timeouts
from orchestrator.models.retries import RetryPolicy
from parley.testing.scripted_model import Answer, Fail
from tests.integration.models.bench import CONFIG, bench, calling, script, wording


async def test_text_streams_piece_by_piece():
    async with bench(script(Answer(text="Your flight to Oslo is booked."))) as at:
        pieces = [piece async for piece in at.engineer.stream("res_naturalize", wording(), calling())]

    assert pieces == ["Your", " flight", " to", " Oslo", " is", " booked."]
    assert at.model.requests[0].body["stream"] is True
    assert at.model.requests[0].body["metadata"]["prompt_id"] == "res_naturalize"
    (payload,) = at.calls()
    assert payload["outcome"] == "answered"
    assert payload["tokens"] > 6


async def test_a_stream_is_retried_until_its_first_piece():
    async with bench(script(Fail(500), Fail(429), Answer(text="Done now."))) as at:
        pieces = [piece async for piece in at.engineer.stream("res_naturalize", wording(), calling())]

    assert pieces == ["Done", " now."]
    assert len(at.model.requests) == 3


async def test_a_stream_that_breaks_off_says_so_and_is_not_repeated():
    pieces: list[str] = []

    async with bench(script(Answer(text="one two three four", break_after=2, piece_delay_s=0.01))) as at:
        with pytest.raises(ModelFailed):
            await at.listen(pieces)

    assert pieces == ["one", " two"]
    assert len(at.model.requests) == 1


async def test_a_stream_that_falls_silent_times_out():
    config = replace(CONFIG, timeouts=Timeouts(stream_s=0.3), retries=RetryPolicy(attempts=1))

    async with bench(script(Answer(text="one two", piece_delay_s=5)), config) as at:
        with pytest.raises(ModelTimedOut):
            await at.hear()


async def test_a_truncated_or_empty_stream_is_not_taken_for_whole():
    async with bench(script(Answer(text="It costs", finish_reason="length"), Answer(text=""))) as at:
        for reason in ("token limit", "empty"):
            with pytest.raises(ModelOutputInvalid, match=reason):
                await at.hear()


async def test_a_listener_that_leaves_pays_for_what_it_heard():
    call = calling()

    async with bench(script(Answer(text="one two three " * 50, piece_delay_s=0.001))) as at:
        stream = at.engineer.stream("res_naturalize", wording(), call)
        assert await anext(stream) == "one"
        await stream.aclose()
        assert at.engineer.available

    assert at.calls()[0]["tokens"] == call.spending.spent.tokens > 0
