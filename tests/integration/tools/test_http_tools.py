"""PX-8, PX-9: HTTP tools with a real server: requests, responses, refusals."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import orjson
import pytest

from orchestrator.adapters.tools.http_request import build_request
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.tools.toolbox import ToolData, ToolError, ToolResult
from orchestrator.turns.step import UnknownOutcome
from tests.integration.tools.factories import LOOPBACK, Caller, called, http_tool, refused, schema, tool_call
from tests.integration.tools.web import UNUSABLE, Web
from tests.processes.http import serve
from tests.wording import english


async def test_inputs_go_where_the_manifest_says(web: Web):
    tool = http_tool(
        web.url + "/echo/{city}/days/{day}?v=2",
        method="POST",
        inputs=schema(
            "city",
            "day",
            city="string",
            day="integer",
            tags={"type": "array"},
            note="string",
            limit="integer",
        ),
        headers={"Authorization": "Bearer ${SHOP_KEY}", "X-Note": "{note}", "X-Day": "day {day}"},
        query={"limit": "{limit}", "tag": "{tags}", "key": "${SHOP_KEY}"},
        body={
            "where": {"city": "{city}", "label": "{city} on {day}"},
            "day": "{day}",
            "note": "{note}",
            "fixed": [1, "{day}"],
        },
    )
    async with Caller(tool, environment={"SHOP_KEY": "s3cret"}) as caller:
        result = await caller.call(city="São Paulo/Süd ?#", day=3, tags=["a", "b&c"])

    assert result == ToolData({"ok": True})
    asked = web.last
    assert asked.method == "POST"
    assert asked.path.startswith("/echo/S%C3%A3o%20Paulo%2FS%C3%BCd%20%3F%23/days/3")
    assert asked.query == [("v", "2"), ("tag", "a"), ("tag", "b&c"), ("key", "s3cret")]
    assert asked.headers["authorization"] == "Bearer s3cret"
    assert asked.headers["x-day"] == "day 3"
    assert "x-note" not in asked.headers
    assert orjson.loads(asked.body) == {
        "where": {"city": "São Paulo/Süd ?#", "label": "São Paulo/Süd ?# on 3"},
        "day": 3,
        "fixed": [1, 3],
    }


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST", "PUT", "PATCH"])
async def test_without_a_mapping_the_rest_of_the_inputs_is_the_query_or_the_body(web: Web, method: str):
    has_body = method in {"POST", "PUT", "PATCH"}
    tool = http_tool(
        web.url + "/echo/{city}", method=method, inputs=schema("city", city="string", days="integer")
    )
    await called(tool, {"city": "Oslo", "days": 2})

    assert web.last.method == method
    assert web.last.query == ([] if has_body else [("days", "2")])
    assert web.last.body == (b'{"days":2}' if has_body else b"")
    assert (web.last.headers.get("content-type") == "application/json") is has_body


async def test_the_calls_key_is_on_the_wire_and_the_same_for_every_attempt(web: Web):
    web.statuses = [503, 429]
    async with Caller(http_tool(web.url + "/flaky", max_retries=2)) as caller:
        assert await caller.call() == ToolData({"ok": True})
        await caller.call()

    keys = [asked.headers["idempotency-key"] for asked in web.asked]
    assert keys == ["turn_1:tool:thing_get:1"] * 3 + ["turn_2:tool:thing_get:1"]


async def test_a_request_names_whom_it_is_made_for(web: Web):
    tool = http_tool(
        web.url + "/echo/users/{user_id}/appointments",
        inputs=schema(day="string"),
        headers={"X-Session": "{session_id}"},
    )
    await called(tool, {"day": "monday"})
    assert web.last.path == "/echo/users/ada/appointments"
    assert web.last.headers["x-session"] == "session_1"
    assert web.last.query == [("day", "monday")]


async def test_a_call_for_an_unknown_user_is_not_made(web: Web):
    tool = http_tool(web.url + "/echo", query={"of": "{user_id}"})
    with pytest.raises(ToolFailure, match="tool needs sign in"):
        build_request(tool, {}, replace(tool_call(), user_id=None), {})


@pytest.mark.parametrize(
    ("status", "message"),
    [(409, "10:30 is taken; another time may be free."), (404, "The thing found nothing.")],
)
async def test_the_author_says_what_a_refusal_means(web: Web, status: int, message: str):
    """RT-33: in the author's words, with the call's values; the response body is never displayed."""
    tool = http_tool(
        f"{web.url}/status/{status}",
        inputs=schema(time="string"),
        errors={409: "{time} is taken; another time may be free."},
    )
    result = await refused(tool, {"time": "10:30"})
    assert english(result.message) == message
    assert not result.undecided


async def test_what_values_contain_is_never_a_placeholder(web: Web):
    tool = http_tool(web.url + "/echo/x", inputs=schema(a="string"), query={"a": "<{a}>"})
    await called(tool, {"a": "${HOME_KEY}{a}"}, environment={"HOME_KEY": "s3cret"})

    assert web.last.query == [("a", "<${HOME_KEY}{a}>")]


@pytest.mark.parametrize(
    ("path", "header", "value"),
    [
        *(("/echo/{city}/orders", "none", value) for value in ("..", ".", "")),
        ("/echo", "{city}", "1\r\nX-B: 2"),
    ],
)
async def test_values_cannot_leave_their_place_in_the_path_or_a_header(
    web: Web, path: str, header: str, value: str
):
    tool = http_tool(web.url + path, inputs=schema("city", city="string"), headers={"X-A": header})
    result = await refused(tool, {"city": value})

    assert result.category is FailureCategory.VALIDATION_ERROR
    assert web.asked == []


async def test_a_missing_secret_is_an_auth_error_that_does_not_name_it(web: Web):
    result = await refused(http_tool(web.url + "/echo/x", headers={"X-Key": "${SHOP_KEY}"}))

    assert result.category is FailureCategory.AUTH_ERROR
    assert "SHOP_KEY" not in english(result.message)
    assert web.asked == []


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (400, "validation_error"),
        (401, "auth_error"),
        (403, "auth_error"),
        (404, "not_found"),
        (408, "timeout"),
        (409, "validation_error"),
        (410, "not_found"),
        (422, "validation_error"),
        (429, "rate_limit"),
        (500, "server_error"),
        (503, "server_error"),
        (504, "timeout"),
    ],
)
async def test_every_status_has_its_category(web: Web, status: int, category: str):
    result = await refused(http_tool(f"{web.url}/status/{status}"))

    assert result.category.value == category
    assert "secret detail" not in english(result.message)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 412, 422, 423, 425, 428, 429, 451])
async def test_a_refusal_means_that_a_change_was_surely_not_made(web: Web, status: int):
    """RT-33"""
    outcome = await change(f"{web.url}/status/{status}")
    assert isinstance(outcome, ToolError)
    assert not outcome.undecided
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    "status", [207, 300, 301, 302, 303, 304, 307, 308, 408, 460, 499, 500, 501, 502, 503, 504, 520]
)
async def test_what_does_not_rule_a_change_out_leaves_its_outcome_unknown(web: Web, status: int):
    """RT-33: a redirect may mean success, and a proxy may have given up on a running request."""
    assert isinstance(await change(f"{web.url}/status/{status}"), UnknownOutcome)
    assert len(web.asked) == 1, "a change is never repeated by itself"


async def test_what_fails_behind_a_redirect_leaves_a_change_unknown():
    """The server has received the request once, even if it cannot be reached again."""
    moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with cutting(moved) as url:
        assert isinstance(await change(url), UnknownOutcome)


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b"nonsense\r\n\r\n"]
)
async def test_a_connection_that_is_cut_leaves_a_change_unknown(said: bytes):
    with cutting(said) as url:
        assert isinstance(await change(url), UnknownOutcome)


async def test_a_change_that_is_not_answered_in_time_is_unknown(web: Web):
    assert isinstance(await change(web.url + "/hang", timeout_ms=500), UnknownOutcome)


async def change(url: str, **more: Any) -> ToolResult:
    """Call a non-idempotent tool once."""
    return await called(http_tool(url, method="POST", idempotent=False, max_retries=3, **more))


@contextmanager
def cutting(said: bytes) -> Iterator[str]:
    """Run a server that reads a request, sends this text, and closes the connection."""

    def answer_once() -> None:
        connection, _ = listening.accept()
        listening.close()
        with connection:
            connection.recv(65_536)
            connection.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer_once)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join(10)
        assert not thread.is_alive()


async def test_the_wait_that_the_server_asks_for_is_passed_on(web: Web):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=300), usegmt=True)
    tools = [
        http_tool(web.url + "/status/429", f"thing_{name}", query={"Retry-After": value})
        for name, value in (("seconds", "7"), ("date", later), ("nonsense", "soon"))
    ]
    async with Caller(*tools, sections={"resilience": {"backoff_max_s": 0.0}}) as caller:
        results = [await caller.call(tool.tool_id) for tool in tools]
        waits = []
        for tool in tools:
            with pytest.raises(ToolFailure) as caught:
                await caller.transports.send(tool, {}, tool_call())
            waits.append(caught.value.retry_after_s)

    assert waits[0] == 7
    assert waits[1] is not None
    assert 290 < waits[1] <= 300
    assert waits[2] is None
    assert isinstance(results[0], ToolError)
    assert "7 seconds" in english(results[0].message)


async def test_a_longer_wait_than_backoff_allows_is_not_waited_for(web: Web):
    tool = http_tool(web.url + "/status/429", query={"Retry-After": "60"}, max_retries=3)
    await called(tool)

    assert len(web.asked) == 1


@pytest.mark.parametrize("path", ["/huge", "/flood"])
async def test_huge_answers_are_cut_off_while_they_come(web: Web, path: str):
    """Also one that calls itself a stream of events."""
    result = await refused(http_tool(web.url + path))

    assert result.category is FailureCategory.SERVER_ERROR
    assert "can't use" in english(result.message)
    assert web.sent_bytes < 10_000_000


async def test_an_answer_that_trickles_is_waited_for_no_longer_than_the_time_out(web: Web):
    """PX-9: no single read is late, so only the timeout of the whole call ends it."""
    result = await refused(http_tool(web.url + "/trickle", timeout_ms=400))

    assert result.category is FailureCategory.TIMEOUT


@pytest.mark.parametrize("path", ["/compressed", "/words", "/list", *(f"/bytes/{kind}" for kind in UNUSABLE)])
async def test_answers_that_are_no_plain_json_object_are_refused(web: Web, path: str):
    result = await refused(http_tool(web.url + path))

    assert result.category is FailureCategory.SERVER_ERROR
    assert "can't use" in english(result.message)


async def test_a_list_may_be_given_a_name(web: Web):
    async with Caller(http_tool(web.url + "/list", wrap_as="rows")) as caller:
        assert await caller.call() == ToolData({"rows": [1, 2, 3]})


async def test_a_hanging_endpoint_times_out_and_the_request_is_broken_off(web: Web):
    result = await refused(http_tool(web.url + "/hang", timeout_ms=1000))

    assert result.category is FailureCategory.TIMEOUT
    assert web.disconnected.wait(10)


async def test_a_server_that_is_away_cannot_be_reached_and_nothing_happened(web: Web):
    with serve(Web().application()) as gone:
        pass
    result = await refused(http_tool(gone + "/order", method="POST", idempotent=False))
    assert (result.undecided, english(result.message)) == (False, "The thing can't be reached.")


async def test_what_a_server_wants_remembered_of_one_user_is_not_sent_for_another(web: Web):
    async with Caller(http_tool(web.url + "/echo/x")) as caller:
        await caller.call(user="ada")
        await caller.call(user="bob")

    assert [asked.headers.get("cookie") for asked in web.asked] == [None, None]


async def test_who_does_not_take_a_connection_is_left_after_the_domains_time():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf, ExitStack() as waiting:
        for _ in range(4):  # unaccepted connections fill its queue
            filler = waiting.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        tool = http_tool(f"http://127.0.0.1:{deaf.getsockname()[1]}/", timeout_ms=20_000, max_retries=0)
        sections = {"network": LOOPBACK["network"] | {"connect_timeout_s": 0.3}}
        began = time.monotonic()
        async with Caller(tool, sections=sections) as caller:
            await caller.refused()

    assert time.monotonic() - began < 5
