"""Slots for names that their entity does not list, and the local classifier's training for them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.errors import ConfigurationError
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1 import System1
from orchestrator.types import Dact
from tests.unit.domain.factories import write_domain

ONTOLOGY = """\
slot_types:
  test: {pattern: "(?:where|with) \\\\w+ (?:is|over) \\\\w+"}
entities:
  list: {values: {work: [job], home: []}}
flows:
  show_list:
    dax: "001"
    intent: Read
    examples:
      ["show {list}", "show {list} {test}", "open {list} {test}", "open {list}", "show {parts} and {parts} of {list}"]
    slots:
      list: {type: source, entity: list, OPEN priority: required, prompt: "Which list?"}
      test: {type: test, samples: ["where size is big", "with price over ten"]}
      parts: {type: group, entity: part, open: true}
"""
PARTS = "  part: {values: [name, day, place]}\nflows:\n"


def load(folder: Path, opened: str) -> LoadedDomain:
    text = ONTOLOGY.replace("OPEN", opened).replace("flows:\n", PARTS, 1)
    return load_domain(write_domain(folder / "notes", {"ontology.yaml": text, "tools.yaml": ""}))


def empty_context() -> NluContext:
    return NluContext(today=date(2026, 11, 20))


def find(loaded: LoadedDomain, text: str) -> dict[str, object]:
    system1 = System1.for_domain(loaded.domain)
    flow = loaded.domain.flows[Dact("show_list")].spec
    return {name: mention.value for name, mention in system1.slots_for(text, flow, empty_context()).items()}


def test_an_open_slot_takes_a_name_that_is_not_listed(tmp_path: Path) -> None:
    loaded = load(tmp_path, "open: true,")
    assert find(loaded, "show Travel Plans") == {"list": "Travel Plans"}
    assert find(loaded, "show job") == {"list": "work"}, "known names still mean what is known"


def test_a_closed_slot_does_not(tmp_path: Path) -> None:
    assert find(load(tmp_path, ""), "show Travel Plans") == {"list": None}


def test_samples_teach_the_form_of_a_slot(tmp_path: Path) -> None:
    assert find(load(tmp_path, "open: true,"), "show work where colour is red") == {
        "list": "work",
        "test": "where colour is red",
    }


def test_only_slots_with_an_entity_are_open(tmp_path: Path) -> None:
    text = (
        ONTOLOGY.replace("OPEN", "")
        .replace("flows:\n", PARTS, 1)
        .replace("type: test, ", "type: test, open: true, ")
    )
    with pytest.raises(ConfigurationError, match="only a slot with an entity can be open"):
        load_domain(write_domain(tmp_path / "notes", {"ontology.yaml": text, "tools.yaml": ""}))
