"""ST-1: states of every earlier version are readable, and those of later versions are rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.storage.upgrade import SCHEMA_VERSION, UPGRADES, upgrade
from orchestrator.errors import SchemaTooNew
from tests.unit.dialogue.factories import FLOW_TYPES

STORED = Path(__file__).parent / "stored"


def load(version: int) -> dict[str, Any]:
    return json.loads((STORED / f"version_{version}.json").read_text())


def test_each_version_has_a_stored_document_and_a_way_up() -> None:
    assert set(UPGRADES) == set(range(1, SCHEMA_VERSION))
    assert {path.stem for path in STORED.glob("*.json")} == {
        f"version_{n}" for n in range(1, SCHEMA_VERSION + 1)
    }


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
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


def test_a_later_version_is_refused() -> None:
    with pytest.raises(SchemaTooNew, match="version 99, but this release reads only up to 1"):
        DialogueState.from_dict({"schema_version": 99}, FLOW_TYPES)
