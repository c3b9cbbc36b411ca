"""Domains loaded from folders: flows, slot types, tools, policies, configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator.adapters.domains.folder import check_domain, load_domain, shipped_domains
from orchestrator.dialogue.slots import Rejected, Valid
from orchestrator.dialogue.specification import Family, FlowSpec, Priority
from orchestrator.domain.summary import summarize
from orchestrator.types import Dact, ToolId
from parley.commands.domain import scaffold
from tests.configuration import default_config
from tests.unit.domain.factories import ONTOLOGY, SERVICES, TOOLS, edit, write_domain
from tests.wording import english


def booking(folder: Path, files: Mapping[str, str]) -> FlowSpec:
    """Return the example's booking flow, with these files in place of the example's."""
    return load_domain(write_domain(folder, files)).domain.flows[Dact("book_flight")].spec


def test_the_example_of_the_interfaces_loads_as_it_stands(tmp_path: Path) -> None:
    """FS-1, FS-4: `date` comes from the library without a declaration."""
    loaded = load_domain(write_domain(tmp_path))

    spec = loaded.domain.flows[Dact("book_flight")].spec
    assert (spec.dax, spec.family, spec.confirm) == ("02B", Family.TRANSFORM, True)
    assert spec.slots["origin"].priority is Priority.REQUIRED
    assert spec.tools[0].slot_mapping == {
        "from": "origin",
        "to": "destination",
        "day": "date",
        "cabin": "cabin",
    }
    assert loaded.domain.slot_types.find("date") is not None
    assert loaded.domain.slot_types.find("money") is None
    assert list(loaded.services) == ["Flights"]


def test_a_domain_names_its_intents(tmp_path: Path) -> None:
    ontology = "intents: {Transform: Book}\n" + edit(ONTOLOGY, ("intent: Transform", "intent: Book"))
    spec = booking(tmp_path, {"ontology.yaml": ontology})
    assert (spec.intent, spec.family) == ("Book", Family.TRANSFORM)


def test_own_slot_types_judge_by_pattern_or_by_validator(tmp_path: Path) -> None:
    """FS-4: an invalid value gets a reason."""
    types = """\
slot_types:
  code: {pattern: "[A-Z]{2}[0-9]+", uppercase: true, description: such as AB12}
  even: {validator: check_even}
"""
    validator = """

def check_even(value):
    if value % 2:
        raise ValueError(f"{value} is odd.")
    return value
"""
    ontology = types + edit(
        ONTOLOGY,
        ("cabin:       {type", "code: {type: code}\n      even: {type: even}\n      cabin:       {type"),
    )
    files = {"ontology.yaml": ontology, "services.py": SERVICES + validator}
    loaded = load_domain(write_domain(tmp_path, files))
    slots, types_ = loaded.domain.flows[Dact("book_flight")].spec.slots, loaded.domain.slot_types

    assert types_.validate("ab12", slots["code"]) == Valid("AB12")
    wrong = types_.validate("12", slots["code"])
    assert isinstance(wrong, Rejected)
    assert english(wrong.why) == "That isn't a valid code; it is such as AB12."
    assert types_.validate(4, slots["even"]) == Valid(4)
    assert types_.validate(3, slots["even"]) == Rejected("3 is odd.")


def test_inputs_that_a_mapping_leaves_out_take_the_slot_of_their_name(tmp_path: Path) -> None:
    ontology = edit(ONTOLOGY, (", cabin: cabin}}", "}}"))
    spec = booking(tmp_path, {"ontology.yaml": ontology})
    assert spec.tools[0].slot_mapping["cabin"] == "cabin"


def test_an_input_that_an_earlier_tool_returns_takes_no_slot(tmp_path: Path) -> None:
    tools = (
        TOOLS
        + """\
  flight_check:
    service: Flights.book
    idempotent: true
    input_schema: {type: object, properties: {cabin: {type: string}}}
    output_schema: {type: object, properties: {cabin: {type: string}}}
"""
    )
    ontology = edit(
        ONTOLOGY, (", cabin: cabin}}", "}}"), ("tools:\n", "tools:\n      - {tool_id: flight_check}\n")
    )
    spec = booking(tmp_path, {"ontology.yaml": ontology, "tools.yaml": tools})
    assert spec.tools[0].slot_mapping == {"cabin": "cabin"}
    assert "cabin" not in spec.tools[1].slot_mapping


def test_policies_are_found_by_dact_or_by_name_and_may_import_their_folder(tmp_path: Path) -> None:
    """PX-1"""
    policies = """\
from ..services import Flights


class BookFlight:
    dact = "book_flight"
    service = Flights
"""
    files = {
        "ontology.yaml": edit(ONTOLOGY, ("intent: Read", "intent: Read\n    policy: Search")),
        "policies/transform_policies.py": policies,
        "policies/read_policies.py": "class Search:\n    pass\n",
    }
    loaded = load_domain(write_domain(tmp_path, files))
    assert {dact: policy.__name__ for dact, policy in loaded.policies.items()} == {
        "book_flight": "BookFlight",
        "search_flights": "Search",
    }
    assert loaded.policies[Dact("book_flight")].service is loaded.services["Flights"]


def test_two_folders_of_one_name_keep_their_code_apart(tmp_path: Path) -> None:
    first = load_domain(write_domain(tmp_path / "a" / "shop"))
    second = load_domain(write_domain(tmp_path / "b" / "shop"))
    assert first.domain.name == second.domain.name == "shop"
    assert first.services["Flights"] is not second.services["Flights"]


def test_entities_come_from_the_file_or_from_a_provider(tmp_path: Path) -> None:
    provider = """
from orchestrator.domain.model import EntityValue


def airports(country):
    return [EntityValue("OSL", "Oslo", (country,))]
"""
    ontology = edit(
        ONTOLOGY,
        ("{values: {OSL: [Oslo], MAD: [Madrid]}}", "{provider: airports, options: {country: Norway}}"),
    )
    files = {"ontology.yaml": ontology, "services.py": SERVICES + provider}
    loaded = load_domain(write_domain(tmp_path, files))
    assert loaded.domain.entities["airport"].values[0].aliases == ("Norway",)


def test_sections_are_laid_over_the_defaults_and_frozen(tmp_path: Path) -> None:
    """CO-5"""
    overrides = (
        "memory: {completed_flows: 3}\nflow_management: {max_stack_depth: 2, on_limit_reached: ask_user}\n"
    )
    config = load_domain(write_domain(tmp_path, {"domain.yaml": overrides})).domain.config

    assert config.memory.completed_flows == 3
    assert config.memory.max_history_messages == default_config().memory.max_history_messages == 50
    assert config.flow_management.max_stack_depth == 2
    with pytest.raises(ValidationError):
        config.memory.completed_flows = 5  # type: ignore[misc]


def test_words_of_yaml_mean_what_they_say(tmp_path: Path) -> None:
    """`no` is a country and `off` a word, not booleans. Times stay strings."""
    ontology = 'entities: {x: [no, on, 12:30, 2026-01-02]}\nflows: {a: {dax: "001", intent: Read}}'
    (tmp_path / "ontology.yaml").write_text(ontology)
    (tmp_path / "domain.yaml").write_text("generation: {naturalize: off}")
    domain = load_domain(tmp_path).domain
    assert [value.canonical for value in domain.entities["x"].values] == ["no", "on", "12:30", "2026-01-02"]
    assert domain.config.generation.naturalize == "off"


def test_what_is_shipped_and_what_is_scaffolded_is_in_order(tmp_path: Path) -> None:
    assert "travel" in shipped_domains()
    assert {name: check_domain(name) for name in shipped_domains()} == {
        name: [] for name in shipped_domains()
    }
    assert check_domain(scaffold("notes", tmp_path)) == []


def test_the_summary_names_tools_changes_and_tags() -> None:
    flows = {flow.dact: flow for flow in summarize(load_domain("travel").domain)}
    cancel = flows[Dact("cancel_booking")]
    assert (cancel.tools, cancel.changes) == (("booking_review", "booking_cancel"), ("booking_cancel",))
    assert (cancel.confirms, cancel.tags) == (True, ("accesses_private_data",))
    assert flows[Dact("search_flights")].changes == ()
    assert flows[Dact("book_flight")].approval == "total above 5000"


def test_tools_that_say_nothing_of_it_take_the_domains_retries_and_time_out(tmp_path: Path) -> None:
    """CO-5"""
    files = {"domain.yaml": "resilience: {tool_retries: 7, tool_timeout_ms: 1234}"}
    tool = load_domain(write_domain(tmp_path, files)).domain.tools[ToolId("flight_book")]
    assert (tool.max_retries, tool.timeout_ms) == (7, 1234)
