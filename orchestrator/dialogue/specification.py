"""What a flow type is: slots, tools and data it takes and gives, as compiled from a domain.

Records only; a flow in progress is in `flow`, the reading of YAML is elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.types import Dact, Json, JsonObject, ToolId


class Priority(StrEnum):
    REQUIRED = "required"
    ELECTIVE = "elective"
    """At least one of its group must be filled."""
    OPTIONAL = "optional"


class Mode(StrEnum):
    DIRECT = "direct"
    """The slots map onto the tools' inputs; no model is needed."""
    SKILL = "skill"
    AUTO = "auto"


class Family(StrEnum):
    """The seven families of intents; a domain's own intents each belong to one of the last four."""

    PLAN = "Plan"
    CONVERSE = "Converse"
    INTERNAL = "Internal"
    READ = "Read"
    PREPARE = "Prepare"
    TRANSFORM = "Transform"
    SCHEDULE = "Schedule"


@dataclass(frozen=True, slots=True)
class SlotSpec:
    """One slot of a flow type.

    `type` names a slot type (`slots.SLOT_TYPES`, or one of the domain's own). `entity` names the
    gazetteer that grounds its values. `values` are the allowed ones of category and checklist, and
    the tokens of exact. `minimum` and `maximum` bound level, range, number and money, and
    `maximum` the length of free text. `depends_on` names slots whose correction puts this one in
    doubt.
    """

    name: str
    type: str
    priority: Priority = Priority.OPTIONAL
    group: str | None = None
    entity: str | None = None
    values: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    prompt: str = ""
    default: Json = None
    description: str = ""
    synonyms: Mapping[str, str] = field(default_factory=dict[str, str])
    depends_on: tuple[str, ...] = ()
    pattern: str | None = None
    """Of exact: a regular expression that the whole token must match."""
    open: bool = False
    """Values that the entity does not list are possible too: what exists changes while people talk."""
    samples: tuple[str, ...] = ()
    """Texts that fill the slot, for System 1 to learn from."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool of a flow. `slot_mapping`: tool input name → slot name."""

    tool_id: ToolId
    slot_mapping: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """One flow type, complete and checked."""

    dact: Dact
    dax: str
    intent: str
    family: Family
    description: str = ""
    examples: tuple[str, ...] = ()
    slots: Mapping[str, SlotSpec] = field(default_factory=dict[str, SlotSpec])
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    edge_flows: tuple[Dact, ...] = ()
    fallback: Dact | None = None
    tools: tuple[ToolUse, ...] = ()
    confirm: bool = False
    mode: Mode = Mode.AUTO
    reflect: bool = False
    options: JsonObject = field(default_factory=JsonObject)
    """Keys of the flow's YAML that policies read and the core does not know."""
