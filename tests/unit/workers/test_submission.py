"""What a message may bring: bounded, and of the right form, before anything is stored (RT-23)."""

from __future__ import annotations

from typing import Any

import pytest

from internal_flows.catalogue import Catalogue
from orchestrator.errors import InputTooLarge, InvalidInput
from workers.internal.start_request import MAX_START_BYTES, read_start
from workers.submission import MAX_TEXT_BYTES, parse_request


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "payload",
    ["x" * MAX_TEXT_BYTES, list(range(MAX_TEXT_BYTES)), deep(65), deep(300)],
    ids=["long", "wide", "deep", "very deep"],
)
def test_an_action_is_bounded(payload: Any) -> None:
    with pytest.raises(InputTooLarge) as refusal:
        parse_request({"session_id": "s", "action": {"name": "choose", "payload": payload}})
    assert refusal.value.field == "action"


def test_a_text_is_bounded() -> None:
    with pytest.raises(InputTooLarge):
        parse_request({"session_id": "s", "text": "x" * (MAX_TEXT_BYTES + 1)})


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"text": "hi"}, "session_id"),
        ({"session_id": "a b", "text": "hi"}, "session_id"),
        ({"session_id": "s", "text": "hi", "tenant_id": ""}, "tenant_id"),
        ({"session_id": "s", "text": "hi", "tenant_id": "a/b"}, "tenant_id"),
        ({"session_id": "s", "text": "hi", "kind": "system"}, "kind"),
    ],
)
def test_what_is_malformed_is_named(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_request(arguments)
    assert refusal.value.field == field


def test_an_ordinary_action_is_taken() -> None:
    request = parse_request({"session_id": "s", "action": {"name": "choose", "payload": {"row": 3}}})
    assert request.to_submission("travel").input.action == {"name": "choose", "payload": {"row": 3}}


@pytest.mark.parametrize(
    "arguments", [{"inputs": ["x" * MAX_START_BYTES]}, {"options": {"a": deep(300)}}, {"x": deep(300)}]
)
def test_what_starts_a_run_is_bounded(arguments: dict[str, Any]) -> None:
    """Before anything is looked up."""
    with pytest.raises(InputTooLarge) as refusal:
        read_start({"flow": "f", **arguments}, Catalogue([]))
    assert refusal.value.field == "inputs"
