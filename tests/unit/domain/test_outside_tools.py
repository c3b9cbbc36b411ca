"""PX-8: HTTP endpoints and MCP servers in the manifest are checked before any call."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.adapters.domains.folder import check_domain, load_domain
from orchestrator.domain.model import Implementation
from orchestrator.types import ToolId
from tests.unit.domain.factories import TOOLS, edit, write_domain

SERVICE = "service: Flights.book"


def messages(folder: Path, implementation: str) -> list[str]:
    tools = edit(TOOLS, (SERVICE, implementation))
    return [str(problem) for problem in check_domain(write_domain(folder, {"tools.yaml": tools}))]


def test_tools_over_http_and_mcp_are_loaded(tmp_path: Path) -> None:
    http = "http: {url: 'https://shop.example/{from}', query: {to: '{to}'}, headers: {X-Key: '${SHOP_KEY}'}}"
    mcp = "mcp: {tool: book, command: [python, server.py], environment: [SHOP_KEY]}"
    loaded = [
        load_domain(write_domain(tmp_path / name, {"tools.yaml": edit(TOOLS, (SERVICE, text))}))
        for name, text in (("http", http), ("mcp", mcp))
    ]
    first, second = (each.domain.tools[ToolId("flight_book")] for each in loaded)

    assert (first.implementation, first.target) == (Implementation.HTTP, "https://shop.example/{from}")
    assert first.options["query"] == {"to": "{to}"}
    assert (second.implementation, second.target) == (Implementation.MCP, "book")
    assert second.options["command"] == ["python", "server.py"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{url: 'ftp://shop.example'}", "http:// or https://"),
        ("{url: 'https://{from}.example/x'}", "can't have placeholders in the host"),
        ("{url: 'https://me:pass@shop.example/x'}", "can't contain credentials"),
        ("{url: 'https://shop.example/x#y'}", "can't have a fragment"),
        ("{url: 'https://shop.example/x?a={from}'}", "put them in query"),
        ("{url: 'https://shop.example/${KEY}'}", "can't contain environment"),
        ("{url: 'https://shop.example/{form}'}", "did you mean 'from'"),
        ("{url: 'https://shop.example/{cabin}'}", "must be required in input_schema"),
        ("{url: 'https://shop.example/x', body: {a: '{from}'}}", "is not sent with GET"),
        ("{url: 'https://shop.example/x', method: POST, body: {a: ['{nowhere}']}}", "uses {nowhere}"),
        ("{url: 'https://shop.example/x', method: POST, body: {a: '${KEY}'}}", "can't contain environment"),
        ("{url: 'https://shop.example/x', headers: {'a b': c}}", "not a valid header name"),
        ("{url: 'https://shop.example/x', headers: {Idempotency-Key: c}}", "is set for every call"),
    ],
)
def test_mistakes_of_an_endpoint_are_named(tmp_path: Path, entry: str, said: str) -> None:
    (message,) = messages(tmp_path, f"http: {entry}")

    assert message.startswith("tools.yaml:")
    assert said in message


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{tool: book}", "a url or command for its server"),
        ("{command: [python]}", "needs a tool"),
        ("{tool: book, url: 'https://a.example', command: [python]}", "use one of them"),
        ("{tool: book, url: 'a.example'}", "http:// or https://"),
        ("{tool: book, url: 'https://a.example/{from}'}", "can't have placeholders"),
        ("{tool: book, url: 'https://a.example', headers: {X-A: '{from}'}}", "the same for all calls"),
        (
            "{tool: book, command: [python], headers: {X-A: b}}",
            "require a url; for a command, use environment",
        ),
        ("{tool: book, command: [python], environment: ['KEY=secret']}", "not a valid variable name"),
    ],
)
def test_mistakes_of_a_server_are_named(tmp_path: Path, entry: str, said: str) -> None:
    (message,) = messages(tmp_path, f"mcp: {entry}")

    assert said in message


def test_a_network_that_is_none_is_named(tmp_path: Path) -> None:
    folder = write_domain(tmp_path, {"domain.yaml": "network: {private_networks: [10.0.0.300]}"})

    (problem,) = check_domain(folder)

    assert "network.private_networks" in problem.place


def test_a_remote_tool_is_assumed_to_send_and_to_return_what_others_wrote(tmp_path: Path) -> None:
    """PX-3: authors can omit the tags, or explain why a tag does not apply."""
    http = "http: {url: 'https://shop.example/x'}"
    files = {"tools.yaml": edit(TOOLS, (SERVICE, http))}
    tool = load_domain(write_domain(tmp_path / "a", files)).domain.tools[ToolId("flight_book")]
    assert tool.assumed == ("communicates_externally", "receives_untrusted_input")
    assert tool.communicates_externally
    assert tool.receives_untrusted_input
    files = {"tools.yaml": edit(TOOLS, (SERVICE, f"{http}\n    trusted: our own stock list, numbers only"))}
    tool = load_domain(write_domain(tmp_path / "b", files)).domain.tools[ToolId("flight_book")]
    assert not tool.assumed
    assert not tool.communicates_externally
    assert not tool.receives_untrusted_input
