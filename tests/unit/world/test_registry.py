"""AG-3: the data registry of a domain and of a session."""

from __future__ import annotations

from orchestrator.dialogue.flow import make_flow_class
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import Entity, EntityValue
from orchestrator.domain.registry import MOST_OF_SESSION, Registry
from orchestrator.types import Dact, JsonObject, SessionId

DOMAIN = Registry(
    {
        "table": Entity("table", (EntityValue("cars", "Cars", (), {"columns": ["name"]}),), "names"),
        "column": Entity("column", (EntityValue("name", "Name"),), "names"),
        "city": Entity("city", (EntityValue("OSL", "Oslo"),)),
    }
)


def a_flow(**outputs: JsonObject | str) -> object:
    spec = FlowSpec(dact=Dact("look"), dax="001", intent="Read", family=Family.READ, description="Look")
    flow = make_flow_class(spec)(0.0)
    flow.outputs.update(outputs)
    return flow


def learn(registry: Registry, **outputs: JsonObject | str) -> object:
    flow = a_flow(**outputs)
    registry.learn(flow)  # type: ignore[arg-type]
    return flow


def test_a_session_knows_the_domain_and_what_its_flows_told() -> None:
    registry = DOMAIN.for_session({})
    learn(registry, names={"table": {"mine": {"columns": ["power"]}}, "column": {"power": {}}})
    assert registry.tables == {"cars": ("name",), "mine": ("power",)}
    assert registry.name("table", "mine") == "mine"
    assert registry.name("city", "OSL") == "Oslo"
    assert registry.find("column", "speed") is None


def test_sessions_are_apart_and_the_domain_stays_as_it_is() -> None:
    learn(DOMAIN.for_session({}), names={"table": {"mine": {}}})
    assert DOMAIN.find("table", "mine") is None
    assert DOMAIN.for_session({}).find("table", "mine") is None


def test_what_is_told_later_replaces_what_was_known() -> None:
    registry = DOMAIN.for_session({})
    learn(registry, names={"table": {"mine": {}, "old": {}}})
    learn(registry, names={"table": {"mine": {}}})
    assert registry.own == {"table": {"mine": {}}}


def test_a_changed_table_has_its_own_columns() -> None:
    registry = DOMAIN.for_session({})
    learn(registry, names={"table": {"cars": {"columns": ["title"]}}})
    assert registry.tables == {"cars": ("title",)}


def test_the_output_leaves_the_flow_and_others_stay() -> None:
    flow = learn(DOMAIN.for_session({}), names={"table": {}}, other="stays")
    assert flow.outputs == {"other": "stays"}  # type: ignore[attr-defined]


def test_what_is_no_object_and_too_much_are_not_learnt() -> None:
    registry = DOMAIN.for_session({})
    learn(registry, names="nonsense")
    assert registry.own == {}
    learn(
        registry,
        names={"table": {f"t{number}": {} for number in range(MOST_OF_SESSION + 50)}, "city": {"X": {}}},
    )
    assert len(registry.own["table"]) == MOST_OF_SESSION
    assert "city" not in registry.own


def test_it_is_kept_with_the_state() -> None:
    state = DialogueState.new(SessionId("s"))
    learn(DOMAIN.for_session(state.intake.entities), names={"table": {"mine": {"columns": ["a"]}}})
    again = DialogueState.from_dict(state.serialize(), {})
    assert DOMAIN.for_session(again.intake.entities).tables["mine"] == ("a",)
    assert "entities" not in DialogueState.new(SessionId("s")).serialize()
