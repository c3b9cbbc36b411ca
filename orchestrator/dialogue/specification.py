"""Specification of a flow type: slots, tools, inputs and outputs, as compiled from a domain.

Records only; a flow in progress is in `flow`, and YAML is parsed elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

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
    """For an exact slot: a regular expression that the whole token must match."""
    open: bool = False
    """Values that the entity does not list are possible too, because they can change during a conversation."""
    counts: str | None = None
    """``people``: who is named counts, too: "me and my wife"."""
    part_of_day: str | None = None
    """For a time: the meaning of an hour without "am" or "pm", such as ``evening`` for a dinner."""
    samples: tuple[str, ...] = ()
    """Texts that fill the slot, for System 1 to learn from."""
    grounded: bool = False
    """A model can only name values that were said or displayed."""
    same_as: tuple[str, ...] = ()
    """Names of this value in other flows: ``slot``, or ``flow.slot`` for a single flow (FS-7)."""
    not_before: str | None = None
    """For a date: another date that it cannot precede, and with which it moves (IR-4)."""
    own_label: str = ""
    """The name that the domain's author gave it for users, or an empty string."""

    @property
    def label(self) -> str:
        """Return the slot's name for users."""
        return self.own_label or self.name.replace("_", " ")

    def takes_what(self, other: SlotSpec) -> bool:
        """Return whether values of another slot are of the kind that this one takes."""
        alike = (self.type, self.entity, self.counts) == (other.type, other.entity, other.counts)
        return alike and {*other.values} <= {*self.values}


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool of a flow. `slot_mapping`: tool input name → slot name."""

    tool_id: ToolId
    slot_mapping: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Binding:
    """The source of a step's slot value: an output of the step `step`, a slot of the plan, or `value`."""

    name: str = ""
    step: str | None = None
    value: Json = None

    def __str__(self) -> str:
        return f"{self.step}.{self.name}" if self.step is not None else self.name or repr(self.value)

    def serialize(self) -> Json:
        """Short: ``slot``, ``step.output``, or ``{value: …}``."""
        return {"value": self.value} if not self.name else str(self)

    @classmethod
    def read(cls, body: Json) -> Binding:
        """Parse what `serialize` returned, which is also the form in which domains write bindings."""
        if isinstance(body, str):
            return _read_name(body)
        return cls(value=body["value"] if isinstance(body, dict) and "value" in body else body)


@lru_cache(1024)
def _read_name(written: str) -> Binding:
    step, dot, name = written.partition(".")
    return Binding(name, step) if dot else Binding(step)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that holds if a bound value is known and not empty, zero or false; `negated` inverts it."""

    binding: Binding
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """A step of a declared plan.

    `needs`: steps that must succeed first; otherwise this one is dropped. `when`: the step is dropped once
    one of these is known not to hold. `optional`: the plan counts as done without it. `tell`: its result is
    reported although the plan continues. `otherwise`: the reason for omitting it, in words for the user.
    """

    name: str
    dact: Dact
    purpose: str = ""
    slots: Mapping[str, Binding] = field(default_factory=dict[str, Binding])
    needs: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    optional: bool = False
    tell: bool = False
    otherwise: str = ""


class Kept(StrEnum):
    """A product of background flows about a conversation."""

    SUMMARY = "summary"
    MEMORY = "memory"


class WhenStale(StrEnum):
    """A turn's reaction if its flow needs something more recent (IF-13)."""

    WAIT = "wait"
    """Request it and wait for it."""
    INLINE = "inline"
    """Compute it within the turn."""
    FLAG = "flag"
    """Go on, and say so."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """A flow needs `of` no older than `turns`; `wait_s`: how long a turn may wait, after which it says so."""

    turns: int
    of: Kept = Kept.SUMMARY
    otherwise: WhenStale = WhenStale.FLAG
    wait_s: float = 2.0


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
    freshness: Freshness | None = None
    changes: Dact | None = None
    """The flow whose result this one changes: started when the user corrects what that flow has done."""
    events: tuple[str, ...] = ()
    """Outside events and reminders that start the flow; their payload fills its slots."""
    options: JsonObject = field(default_factory=JsonObject)
    """Keys of the flow's YAML that policies read and the core does not know."""
    language: str = "en"
    """The language of the flow's own texts."""
    recipe: tuple[RecipeStep, ...] = ()
    """For a Plan flow: its declared steps; without them, a model decomposes the request."""
