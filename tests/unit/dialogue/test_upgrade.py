"""ST-1: stored states of every earlier version can be read; those of later ones are refused clearly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.dialogue.ambiguity import Level
from orchestrator.dialogue.changes.inheritance import take_inputs
from orchestrator.dialogue.lifecycle import ACTIVE, INTERRUPTED
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.storage.upgrade import SCHEMA_VERSION, UPGRADES, upgrade
from orchestrator.dialogue.understanding import Digression
from orchestrator.errors import SchemaTooNew
from tests.unit.dialogue.factories import FLOW_TYPES, MODIFY_BOOKING

STORED = Path(__file__).parent / "stored"


def load(version: int) -> dict[str, Any]:
    return json.loads((STORED / f"version_{version}.json").read_text())


def test_each_version_has_a_stored_document_and_a_way_up() -> None:
    assert set(UPGRADES) == set(range(SCHEMA_VERSION))
    assert {path.stem for path in STORED.glob("*.json")} == {
        f"version_{n}" for n in range(SCHEMA_VERSION + 1)
    }


@pytest.mark.parametrize("version", range(SCHEMA_VERSION + 1))
def test_stored_documents_load_and_keep_the_invariants(version: int) -> None:
    document = load(version)
    before = json.dumps(document)
    state = DialogueState.from_dict(document, FLOW_TYPES)
    assert json.dumps(document) == before
    assert state.stack.check() == []
    assert state.stack.flows
    body = state.serialize()
    assert body["schema_version"] == SCHEMA_VERSION
    assert DialogueState.from_dict(body, FLOW_TYPES).serialize() == body


def test_the_present_version_is_taken_as_it_is() -> None:
    document = load(SCHEMA_VERSION)
    assert upgrade(document) is document
    assert DialogueState.from_dict(document, FLOW_TYPES).serialize() == document


def test_version_0_keeps_its_meaning() -> None:
    state = DialogueState.from_dict(load(0), FLOW_TYPES)
    book, check = state.stack.flows
    assert (book.status, check.status) == (INTERRUPTED, ACTIVE)
    assert book.values() == {"cabin": "economy", "origin": "LHR"}
    assert book.interruption == "User wants to check a booking first"
    assert state.turn == 6
    assert state.digression.depth == 1
    assert state.digression.last is Digression.HELP
    assert state.ambiguity.current is not None
    assert (state.ambiguity.current.level, state.ambiguity.current.slot) == (Level.SPECIFIC, "booking_ref")
    assert [message.role for message in state.history.messages] == ["user", "agent"]
    assert [flow.dact for flow in state.completed] == ["check_booking"]
    modify = MODIFY_BOOKING(0.0)
    assert take_inputs(state, modify) == ["booking_ref"]
    assert modify.value("booking_ref") == "BK-1"


def test_a_later_version_is_refused() -> None:
    with pytest.raises(SchemaTooNew, match="version 99, and this release reads up to 2"):
        DialogueState.from_dict({"schema_version": 99}, FLOW_TYPES)
