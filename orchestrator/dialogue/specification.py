"""The specification of a flow type, as compiled from a domain: slots, tools, inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from orchestrator.types import Dact, Json, JsonObject, ToolId


class Priority(StrEnum):
    REQUIRED = "required"
    ELECTIVE = "elective"
    """At least one elective slot of each group must be filled."""
    OPTIONAL = "optional"


class Mode(StrEnum):
    DIRECT = "direct"
    """The slots map onto the tools' inputs, without a model."""
    SKILL = "skill"
    AUTO = "auto"


class Family(StrEnum):
    """The seven families of intents. Domains can rename the last four."""

    PLAN = "Plan"
    CONVERSE = "Converse"
    INTERNAL = "Internal"
    READ = "Read"
    PREPARE = "Prepare"
    TRANSFORM = "Transform"
    SCHEDULE = "Schedule"


NO_STEPS = frozenset({Family.PLAN, Family.INTERNAL, Family.CONVERSE})
"""Families whose flows can't be added to a plan. Only a domain's recipes can contain `CONVERSE` flows."""


@dataclass(frozen=True, slots=True)
class SlotSpec:
    """A slot of a flow type.

    `type`: the name of a slot type. `group`: the group of an elective slot. `entity`: the entity whose known values
    the slot accepts. `values`: the choices of a category or checklist, the tokens of an exact slot, or the
    currencies of a money slot. `minimum`, `maximum`: limits of a level, range, number or amount of money;
    `maximum` also limits the length of free text. `depends_on`: slots whose correction can clear this slot.
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
    """True if values outside the entity's list are possible, because the list can change during a conversation."""
    counts: str | None = None
    """``people`` if phrases such as "me and my wife" stand for a number of people."""
    part_of_day: str | None = None
    """For a time: the part of day meant by an hour without "am" or "pm", such as ``evening`` for a dinner."""
    samples: tuple[str, ...] = ()
    """Texts that fill the slot, as training examples for the local classifier."""
    grounded: bool = False
    """True if a model can fill the slot only with values that were said or displayed."""
    same_as: tuple[str, ...] = ()
    """Names of this value in other flows: ``slot``, or ``flow.slot`` for a single flow (FS-7)."""
    not_before: str | None = None
    """For a date: the slot of another date that this date cannot precede (IR-4)."""
    own_label: str = ""

    @property
    def label(self) -> str:
        return self.own_label or self.name.replace("_", " ")

    @property
    def is_free_text(self) -> bool:
        return self.type == "free_text"

    def takes_what(self, other: SlotSpec) -> bool:
        """Return whether this slot accepts the values of another slot."""
        alike = (self.type, self.entity, self.counts) == (other.type, other.entity, other.counts)
        return alike and {*other.values} <= {*self.values}


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that a flow can call. `slot_mapping`: slot names by tool input name."""

    tool_id: ToolId
    slot_mapping: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Binding:
    """The source of a step's slot value: output `name` of `step`, the plan's slot `name`, or the constant `value`."""

    name: str = ""
    step: str | None = None
    value: Json = None

    def __str__(self) -> str:
        return f"{self.step}.{self.name}" if self.step is not None else self.name or repr(self.value)

    def serialize(self) -> Json:
        """Return the short form: ``slot``, ``step.output``, or ``{value: …}``."""
        return {"value": self.value} if not self.name else str(self)

    @classmethod
    def read(cls, body: Json) -> Binding:
        """Parse the output of `serialize`, whose format domain files also use. Any other value becomes a constant."""
        if isinstance(body, str):
            return _read_name(body)
        return cls(value=body["value"] if isinstance(body, dict) and "value" in body else body)


@lru_cache(1024)
def _read_name(written: str) -> Binding:
    step, dot, name = written.partition(".")
    return Binding(name, step) if dot else Binding(step)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that a plan's value is known and not empty, zero or false. `negated`: True to invert it."""

    binding: Binding
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """A step of a declared plan.

    `needs`: steps that must succeed first, or else this step is dropped. `when`: conditions; the step is
    dropped if a condition is false. `optional`: True if the plan counts as done without the step. `tell`:
    True to report the step's result even though the plan continues. `otherwise`: the reason for omitting the
    step, for the user.
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
    """Data that background flows derive from a conversation."""

    SUMMARY = "summary"
    MEMORY = "memory"


class WhenStale(StrEnum):
    """A turn's reaction to an outdated summary or memory that its flow needs (IF-13)."""

    WAIT = "wait"
    """Request a refresh and wait for it."""
    INLINE = "inline"
    """Refresh the summary or memory within the turn."""
    FLAG = "flag"
    """Continue, flag the turn, and request a refresh."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """The maximum age, in turns, of the summary or memory that a flow needs.

    `otherwise`: the reaction to older data. `wait_s`: maximum time to wait for a refresh, in seconds; after
    this time, the turn continues with a flag.
    """

    turns: int
    of: Kept = Kept.SUMMARY
    otherwise: WhenStale = WhenStale.FLAG
    wait_s: float = 2.0


@dataclass(frozen=True, slots=True)
class FlowSpec:
    dact: Dact
    dax: str
    """The flow code: the digits of the flow's primitive acts; see `domain.acts`."""
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
    """The flow whose result this flow changes. This flow starts when the user corrects that result."""
    events: tuple[str, ...] = ()
    """External events and reminders that start the flow. Their payload fills its slots."""
    options: JsonObject = field(default_factory=JsonObject)
    """Additional YAML keys that policies read."""
    language: str = "en"
    """The language code of the flow's description, prompts and other declared texts."""
    recipe: tuple[RecipeStep, ...] = ()
    """For a Plan flow: its declared steps. If empty, a model decomposes the request."""

    @property
    def required(self) -> set[str]:
        """Return the names of the required slots."""
        return {name for name, slot in self.slots.items() if slot.priority is Priority.REQUIRED}
