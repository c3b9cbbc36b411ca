"""CO-2: `parley doctor --model` reports what an endpoint supports, and which missing features Parley needs."""

from collections.abc import Callable

from orchestrator.adapters.models.chat import LibraryChat
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.settings import NO_STORES, read_settings
from parley.diagnosis.finding import Finding
from parley.diagnosis.model_probe import probe, probe_configured
from parley.testing.scripted_model import (
    Answer,
    Computed,
    Fail,
    Reply,
    Request,
    Script,
    ScriptedModel,
    ToolUse,
)
from tests.integration.models.quirks import openai_error, sent


def well_behaved(request: Request) -> Reply:
    if request.body.get("tools"):
        many = 2 if "both" in request.said else 1
        return ToolUse(calls=(("note_color", {"color": "red"}),) * many)
    return Answer(text='{"color": "red"}')


async def findings(reply: Callable[[Request], Reply]) -> tuple[dict[str, Finding], list[Request]]:
    with ScriptedModel(Script(default=Computed(reply))) as model:
        client = LibraryChat(Endpoint(base_url=model.base_url))
        try:
            found = [one async for one in probe(client, "m")]
        finally:
            await client.aclose()
        return {one.name.removeprefix("model: "): one for one in found}, model.requests


async def test_all_that_is_asked_is_taken() -> None:
    found, requests = await findings(well_behaved)

    assert {one.fine for one in found.values()} == {True}
    assert len(requests) == len(found) == 13
    assert "tokens" in found["plain"].message
    assert [bool(request.metadata) for request in requests].count(True) == 1


async def test_what_is_refused_is_named_and_what_follows_from_it() -> None:
    def endpoint(request: Request) -> Reply:
        refused = {"metadata", "stream_options"} & request.body.keys()
        if refused:
            return sent(openai_error("Unknown field", param=refused.pop(), code="unknown_parameter"), 400)
        form = (request.body.get("response_format") or {}).get("type")
        if form == "json_schema":
            return sent(openai_error("json_schema is not available"), 400)
        # A template without tools: the model writes prose.
        return Answer(text='{"color": "red"}')

    found, _ = await findings(endpoint)

    assert {name for name, one in found.items() if one.fine is None} == {
        "schema", "metadata", "stream token counts", "required tool", "parallel tools",
    }  # fmt: skip
    assert (found["tool"].fine, found["tool"].remedy) == (False, "skills can't run")
    assert "no tool was called" in found["tool"].message
    assert "400, unknown_parameter, metadata" in found["metadata"].message


async def test_an_account_without_money_is_asked_once() -> None:
    found, requests = await findings(lambda _: sent(openai_error("q", code="insufficient_quota"), 429))

    assert "model_quota_exceeded (429, insufficient_quota)" in found["plain"].message
    assert len(requests) == 1


async def test_a_server_that_fails_is_asked_everything() -> None:
    found, _ = await findings(lambda _: Fail(500))

    assert {one.fine for one in found.values()} == {False, None}


async def test_a_server_that_is_not_there_is_said_to_be_so() -> None:
    found = [
        one
        async for one in probe_configured(read_settings(**NO_STORES, OPENAI_BASE_URL="http://127.0.0.1:9/v1"))
    ]

    assert "cannot be reached" in found[-1].message
    assert len(found) == 2, "what is asked, and the first question"
