"""Permitted targets of HTTP calls: redirects, and private addresses."""

from __future__ import annotations

from contextlib import ExitStack

import orjson
import pytest

from orchestrator.adapters.tools.http import HttpTools
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.tools.toolbox import ToolData
from tests.integration.tools.factories import Caller, http_tool, make_domain, schema, tool_call
from tests.integration.tools.web import Web
from tests.processes.http import serve


async def test_redirects_within_the_host_are_followed_with_method_and_body(web: Web):
    tool = http_tool(web.url + "/moved", method="POST", inputs=schema(a="integer"))
    async with Caller(tool) as caller:
        assert await caller.call(a=1) == ToolData({"ok": True})

    assert [(asked.method, asked.path) for asked in web.asked] == [
        ("POST", "/moved"),
        ("POST", "/echo/moved"),
    ]
    assert orjson.loads(web.last.body) == {"a": 1}


async def test_redirects_to_other_hosts_are_not_followed(web: Web):
    with ExitStack() as stack:
        other = Web()
        other.url = stack.enter_context(serve(other.application()))
        web.elsewhere = other.url + "/echo/stolen"
        async with Caller(
            http_tool(web.url + "/away", headers={"X-Key": "${KEY}"}), environment={"KEY": "1"}
        ) as caller:
            result = await caller.refused()

    assert result.category is FailureCategory.SERVER_ERROR
    assert other.asked == []


async def test_redirects_come_to_an_end(web: Web):
    async with Caller(http_tool(web.url + "/round")) as caller:
        await caller.refused()

    assert len(web.asked) == 3


async def test_private_addresses_are_refused_unless_the_domain_allows_them(web: Web):
    async with Caller(
        http_tool(web.url + "/echo/x"), sections={"network": {"private_networks": []}}
    ) as caller:
        result = await caller.refused()

    assert result.category is FailureCategory.AUTH_ERROR
    assert web.asked == []


async def test_a_public_name_with_a_private_address_is_refused(web: Web):
    port = web.url.rpartition(":")[2]
    tool = http_tool(f"http://shop.example:{port}/echo/x")

    async def look_up(host: str, port: int) -> list[str]:
        return ["93.184.215.14", "127.0.0.1"]

    closed = HttpTools(
        make_domain(sections={"network": {"private_networks": []}}).config.network, look_up=look_up
    )
    with pytest.raises(ToolFailure) as caught:
        await closed.send(tool, {}, tool_call())
    await closed.close()

    assert caught.value.category is FailureCategory.AUTH_ERROR
    assert web.asked == []


async def test_the_connection_goes_to_the_address_that_was_checked(web: Web):
    port = web.url.rpartition(":")[2]
    looked_up: list[str] = []

    async def look_up(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return ["127.0.0.1"]

    http = HttpTools(make_domain().config.network, look_up=look_up)
    answer = await http.send(http_tool(f"http://shop.example:{port}/echo/x"), {}, tool_call())
    await http.close()

    assert answer == {"ok": True}
    assert looked_up == ["shop.example"]
    assert web.last.headers["host"] == f"shop.example:{port}"
