"""PX-8, PX-9: tools of MCP servers, in a child process and over HTTP."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.adapters.tools.mcp import McpTools
from orchestrator.domain.model import Implementation, ToolSpec
from orchestrator.errors import FailureCategory
from orchestrator.saying import say
from orchestrator.tools.toolbox import ToolData, ToolError
from orchestrator.turns.step import UnknownOutcome
from tests.cases import for_each
from tests.integration.tools.factories import Caller, called, mcp_tool, schema, until
from tests.integration.tools.mcp_server import make_server
from tests.processes.commands import forked_command
from tests.processes.http import serve
from tests.wording import english

ADD = schema("left", left="integer", right="integer")
SIZE = schema("size", size="integer")
NAME = schema("name", name="string")
MARKER = schema("marker", marker="string")


@pytest.fixture(scope="module", autouse=True)
def _servers() -> Iterator[None]:
    """Fork servers from a process that has imported the SDK, because a new process needs seconds."""
    with (
        forked_command("mcp-server", "mcp_server", imports=["mcp.server.mcpserver"]) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        yield


@pytest.fixture(params=["stdio", "http", "http with events"])
def place(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Return a server's address as in the manifest."""
    if request.param == "stdio":
        yield {}
        return
    application = make_server().streamable_http_app(json_response=request.param == "http")
    with serve(application) as url:
        yield {"url": url + "/mcp"}


async def test_a_tool_is_called_with_its_inputs(place: dict[str, Any]):
    """With the call's key, and with content as an object."""
    names = ("key_show", "word_list", "picture_get")
    tools = [mcp_tool(name, name, **place) for name in names]
    async with Caller(mcp_tool("number_add", inputs=ADD, **place), *tools) as caller:
        totals = [await caller.call(left=1, right=2), await caller.call(left=5)]
        key, words, picture = [await caller.call(name) for name in names]

    assert totals == [ToolData({"total": 3}), ToolData({"total": 6})]
    assert key == ToolData({"key": "turn_3:tool:key_show:1"})
    assert words == ToolData({"text": "one\ntwo"})
    block = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert picture == ToolData({"text": "a dot", "content": [block]})


async def test_huge_answers_are_refused_and_the_server_goes_on(place: dict[str, Any]):
    tools = [
        mcp_tool("text_huge", "text_huge", inputs=SIZE, **place),
        mcp_tool("number_add", "number_add", inputs=ADD, **place),
    ]
    async with Caller(*tools) as caller:
        huge, other = await asyncio.gather(
            caller.call("text_huge", size=10_000_000), caller.call("number_add", left=1)
        )
        afterwards = await caller.call("text_huge", size=10)

    assert isinstance(huge, ToolError)
    assert huge.category is FailureCategory.SERVER_ERROR
    assert other == ToolData({"total": 2})
    assert afterwards == ToolData({"text": "x" * 10})


async def test_what_a_tool_reports_as_its_failure_has_a_category(place: dict[str, Any]):
    """A result that does not fit the manifest is a failure, too."""
    lie = mcp_tool("thing_lie", "thing_lie", output_schema=schema("count", count="integer"), **place)
    tools = [mcp_tool("thing_fail", "thing_fail", **place), mcp_tool("thing_refuse", "thing_refuse", **place)]
    async with Caller(lie, *tools) as caller:
        failed = await caller.refused("thing_fail")
        refused = await caller.refused("thing_refuse")
        lied = await caller.refused("thing_lie")

    assert "can't use" in english(lied.message)
    assert (failed.category, failed.undecided) == (FailureCategory.SERVER_ERROR, True)
    assert "secret detail" not in english(failed.message)
    assert (refused.category, refused.undecided) == (FailureCategory.NOT_FOUND, False)


@for_each(
    "tool",
    [
        mcp_tool("number_subtract"),
        mcp_tool("number_add"),
        mcp_tool("number_add", inputs=schema("left", left="string")),
        mcp_tool("number_add", inputs=schema("left", left="integer", third="integer")),
    ],
    ids=["no such tool", "a required input is missing", "another type", "an input too many"],
)
async def test_a_manifest_that_does_not_fit_the_server_sends_nothing(tool: ToolSpec):
    async with Caller(tool) as caller:
        arguments: dict[str, Any] = {"left": 1} if "left" in tool.input_schema.get("properties", {}) else {}
        if tool.input_schema.get("properties", {}).get("left") == {"type": "string"}:
            arguments = {"left": "1"}
        result = await caller.call(**arguments)

    assert result == ToolError(FailureCategory.SERVER_ERROR, say("tool_not_responding", tool="The thing"))


async def test_there_is_one_session_for_all_tools_and_callers():
    tools = [mcp_tool("process_show", "process_show"), mcp_tool("process_show", "process_look")]
    async with Caller(*tools) as caller:
        results = await asyncio.gather(*(caller.call(tool.tool_id) for tool in tools for _ in range(5)))

    assert len({_pid(result) for result in results}) == 1


async def test_closing_stops_the_process_even_one_that_does_not_end_by_itself():
    command = (sys.executable, "mcp_server.py", "--slow-end")  # a separate process, like those of a domain
    async with Caller(mcp_tool("process_show", command=command)) as caller:
        pid = _pid(await caller.call())
        assert psutil.pid_exists(pid)

    assert not psutil.pid_exists(pid)


async def test_a_server_that_died_is_started_again():
    tools = [
        mcp_tool("process_die", "process_die", idempotent=False),
        mcp_tool("process_show", "process_show"),
    ]
    async with Caller(*tools) as caller:
        before = _pid(await caller.call("process_show"))
        died = await caller.call("process_die")
        after = _pid(await caller.call("process_show"))

    assert isinstance(died, UnknownOutcome), "it may have had its effect"
    assert after != before


async def test_a_server_that_died_between_calls_costs_no_call():
    async with Caller(mcp_tool("process_show", idempotent=False)) as caller:
        before = _pid(await caller.call())
        process = psutil.Process(before)
        process.kill()
        await until(lambda: _session_of(caller) is None)
        after = await caller.call()

    assert _pid(after) != before


async def test_a_server_over_http_that_forgot_the_session_costs_no_call():
    with serve(make_server().streamable_http_app(json_response=True)) as url:
        port = int(url.rpartition(":")[2])
        caller = Caller(mcp_tool("number_add", inputs=ADD, idempotent=False, url=url + "/mcp"))
        assert await caller.call(left=1) == ToolData({"total": 2})
    try:
        with serve(make_server().streamable_http_app(json_response=True), port=port):
            assert await caller.call(left=1) == ToolData({"total": 2})
    finally:
        await caller.transports.close()


@pytest.mark.parametrize(
    "place",
    [{"command": ("no-such-program",)}, {"command": (sys.executable, "-c", "print('no server')")}],
    ids=["no such program", "no server"],
)
async def test_a_server_that_cannot_be_started_is_named_and_nothing_happened(place: dict[str, Any]):
    async with Caller(mcp_tool("number_add", inputs=ADD, idempotent=False, **place)) as caller:
        first = await caller.call(left=1)
        again = await caller.call(left=1)

    assert (
        first == again == ToolError(FailureCategory.SERVER_ERROR, say("tool_unreachable", tool="The thing"))
    )


async def test_a_server_over_http_that_is_away_is_named_and_nothing_happened():
    with serve(make_server().streamable_http_app()) as url:
        pass
    result = await called(mcp_tool("number_add", inputs=ADD, idempotent=False, url=url + "/mcp"), {"left": 1})

    assert result == ToolError(FailureCategory.SERVER_ERROR, say("tool_unreachable", tool="The thing"))


async def test_private_addresses_are_refused_unless_the_domain_allows_them():
    with serve(make_server().streamable_http_app(json_response=True)) as url:
        tool = mcp_tool("number_add", inputs=ADD, url=url + "/mcp")
        async with Caller(tool, sections={"network": {"private_networks": []}}) as caller:
            result = await caller.refused(left=1)

    assert "can't be reached" in english(result.message)


async def test_a_server_gets_to_see_only_the_variables_that_it_is_given():
    tools = [
        mcp_tool("variable_show", "variable_show", inputs=NAME, environment=("SHOP_KEY",)),
        mcp_tool("variable_show", "variable_look", inputs=NAME, environment=("MISSING_KEY",)),
    ]
    async with Caller(*tools, environment={"SHOP_KEY": "s3cret", "OTHER_KEY": "x"}) as caller:
        given = await caller.call("variable_show", name="SHOP_KEY")
        other = await caller.call("variable_show", name="OTHER_KEY")
        without = await caller.refused("variable_look", name="MISSING_KEY")

    assert given == ToolData({"value": "s3cret"})
    assert other == ToolData({"value": None})
    assert without.category is FailureCategory.AUTH_ERROR


async def test_a_server_deaf_to_cancellation_is_given_up_and_started_again(tmp_path: Path):
    marker = tmp_path / "here"
    tools = [
        mcp_tool("thing_hang", "thing_hang", inputs=MARKER, timeout_ms=300),
        mcp_tool("process_show", "process_show", max_retries=1),  # the hung session may break during the call
    ]
    async with Caller(*tools) as caller:
        before = _pid(await caller.call("process_show"))
        hung = [await caller.call("thing_hang", marker=str(marker)) for _ in range(3)]
        after = _pid(await caller.call("process_show"))
        await until(lambda: not psutil.pid_exists(before))

    assert marker.exists(), "the server was really in the tool"
    assert all(isinstance(result, ToolError) for result in hung)
    assert {result.category for result in hung if isinstance(result, ToolError)} == {FailureCategory.TIMEOUT}
    assert after != before


def _pid(result: object) -> int:
    assert isinstance(result, ToolData), result
    assert result.data["pid"] != os.getpid()
    return result.data["pid"]


def _session_of(caller: Caller) -> object:
    mcp = caller.transports._carriers[Implementation.MCP]
    assert isinstance(mcp, McpTools)
    (server,) = mcp._servers.values()
    return server._session


async def test_output_between_messages_costs_nothing():
    """Text, and garbage."""
    names = ("text_print", "text_garble")
    tools = [mcp_tool(name, name) for name in names]
    async with Caller(*tools, mcp_tool("number_add", "number_add", inputs=ADD)) as caller:
        assert [await caller.call(name) for name in names] == [ToolData({"ok": True})] * 2
        assert await caller.call("number_add", left=1) == ToolData({"total": 2})


async def test_an_endless_line_ends_the_session_and_takes_no_memory():
    """The memory is that of the process, which would hold the line twice."""
    tools = [
        mcp_tool("text_flood", "text_flood", inputs=SIZE, idempotent=False),
        mcp_tool("process_show", "process_show"),
    ]
    async with Caller(*tools) as caller:
        before = _pid(await caller.call("process_show"))
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        flooded = await caller.call("text_flood", size=400)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - highest
        after = _pid(await caller.call("process_show"))

    assert isinstance(flooded, UnknownOutcome), "it may have had its effect"
    assert grown < 100_000, f"{grown} kB"
    assert after != before


@for_each("tool", ["model_ask", "user_ask"])
async def test_a_server_gets_neither_our_model_nor_our_user(tool: str):
    """The server may ask for both; nothing here answers, and its call fails."""
    async with Caller(mcp_tool(tool), mcp_tool("number_add", "number_add", inputs=ADD)) as caller:
        asked = await caller.refused()
        other = await caller.call("number_add", left=1)

    assert asked.category is FailureCategory.SERVER_ERROR
    assert "password" not in english(asked.message)
    assert other == ToolData({"total": 2})


async def test_a_server_that_changes_its_tools_fails_in_those_calls_alone():
    """A tool is gone, and another has different inputs."""
    tools = [
        mcp_tool("tools_change", "tools_change"),
        mcp_tool("key_show", "key_show"),
        mcp_tool("number_add", "number_add", inputs=ADD),
        mcp_tool("process_show", "process_show"),
    ]
    async with Caller(*tools) as caller:
        before = await caller.call("number_add", left=1)
        await caller.call("tools_change")
        gone = await caller.call("key_show")
        other = await caller.call("number_add", left=1)
        pid = _pid(await caller.call("process_show"))

    assert before == ToolData({"total": 2})
    for result in (gone, other):
        assert isinstance(result, ToolError)
        assert result.category in {FailureCategory.SERVER_ERROR, FailureCategory.VALIDATION_ERROR}
    assert pid
