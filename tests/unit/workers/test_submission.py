"""Contents of a message: limited and validated before anything is stored (RT-23)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from internal_flows.catalogue import Catalogue
from internal_flows.start_request import MAX_START_BYTES, read_start
from orchestrator.adapters.domains.folder import DomainRegistry
from orchestrator.errors import InputTooLarge, InvalidInput
from orchestrator.turns.submission import MAX_INPUT_BYTES
from tests.cases import for_each
from workers.submission import parse_request


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@for_each(
    ("payload", "code"),
    [
        ("x" * MAX_INPUT_BYTES, "input_too_large"),
        (list(range(MAX_INPUT_BYTES)), "input_too_large"),
        (deep(65), "invalid_input"),
        (deep(300), "invalid_input"),
        (deep(5000), "invalid_input"),
        ({1, 2}, "invalid_input"),
    ],
    ids=["long", "wide", "deep", "very deep", "deeper than can be encoded", "no JSON"],
)
def test_an_action_is_bounded(payload: Any, code: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_request({"session_id": "s", "action": {"name": "choose", "payload": payload}})
    assert (refusal.value.code, refusal.value.field) == (code, "body")


def test_a_session_that_a_message_makes_has_its_domains_rule(tmp_path: Path) -> None:
    """RT-5: `session.if_busy` of `domain.yaml`."""
    folder = tmp_path / "strict"
    folder.mkdir()
    (folder / "ontology.yaml").touch()
    (folder / "domain.yaml").write_text("session: {if_busy: reject}")
    domains = DomainRegistry(str(folder))

    def rule(domain: str | None) -> str:
        request = parse_request({"session_id": "s", "text": "hi", "domain": domain})
        return request.for_inbox(domains).session_if_busy.value

    assert (rule("strict"), rule(None), rule("travel")) == ("reject", "reject", "understand")


def test_a_text_is_bounded() -> None:
    with pytest.raises(InputTooLarge):
        parse_request({"session_id": "s", "text": "x" * (MAX_INPUT_BYTES + 1)})


@for_each(
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
    assert request.for_inbox(DomainRegistry("travel")).input.action == {
        "name": "choose",
        "payload": {"row": 3},
    }


@pytest.mark.parametrize(
    "arguments", [{"inputs": ["x" * MAX_START_BYTES]}, {"options": {"a": deep(300)}}, {"x": deep(300)}]
)
def test_what_starts_a_run_is_bounded(arguments: dict[str, Any]) -> None:
    """The limits apply before any lookup."""
    with pytest.raises(InputTooLarge) as refusal:
        read_start({"flow": "f", **arguments}, Catalogue([]))
    assert refusal.value.field == "inputs"


def test_a_domain_that_is_not_served_is_refused_to_the_sender() -> None:
    request = parse_request({"session_id": "s", "text": "hello", "domain": "nowhere"})

    with pytest.raises(InvalidInput, match="Unknown domain 'nowhere'") as refusal:
        request.for_inbox(DomainRegistry("travel"))

    assert refusal.value.field == "domain"
