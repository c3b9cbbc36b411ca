"""The schema of a domain's YAML files. `compile` checks references between entries.

Every key has a default, so that one run finds all problems, even after a missing or invalid key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    model_validator,
)

from orchestrator.dialogue.specification import Kept, Mode, Priority, WhenStale
from orchestrator.dialogue.understanding import Digression
from orchestrator.domain.guarding import Language
from orchestrator.domain.sections import Pattern, Section
from orchestrator.types import Json, JsonObject, is_list, is_object

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def _check_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("is not a valid name: use lowercase letters, digits and _, starting with a letter")
    return value


Name = Annotated[str, AfterValidator(_check_name)]


class Entry(Section):
    def fill(self, record: type[Record], **more: Any) -> Record:
        """Create a record from this entry's fields with the same names. `more`: the record's other fields."""
        shared = {one.name for one in fields(record)} & type(self).model_fields.keys()
        return record(**{name: getattr(self, name) for name in shared} | more)


class SlotEntry(Entry):
    """A slot of a flow.

    Attributes:
        open: True if the slot also accepts values that `entity` does not list.
        counts: ``people`` if phrases such as "me and my wife" give the number.
        part_of_day: the part of day meant by a time without "am" or "pm".
        samples: values for the slot's placeholder in examples, if the slot lists no values.
        label: the slot's name as users see it.
        synonyms: users' words for each of `values`.
        same_as: names of this value in other flows, as ``slot`` or ``flow.slot``.
        grounded: True if a model can only use values that were said or displayed.
        not_before: the date slot that this date must not precede.
        pattern: a regular expression, for slots of type exact.
    """

    type: str | None = None
    priority: Priority = Priority.OPTIONAL
    group: str | None = None
    entity: str | None = None
    open: bool = False
    counts: Literal["people"] | None = None
    part_of_day: Literal["morning", "afternoon", "evening", "night"] | None = None
    samples: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    prompt: str = ""
    description: str = ""
    label: str = ""
    default: Json = None
    synonyms: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    depends_on: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()
    grounded: bool = False
    not_before: str | None = None
    pattern: Pattern | None = None


class ToolUseEntry(Entry):
    tool_id: str | None = None
    slot_mapping: Mapping[str, str] = Field(default_factory=dict[str, str])


class StepEntry(Entry):
    """A step of a declared plan.

    `slots`: the source of each slot: a slot of the plan, ``step.output``, or ``{value: …}``. `when`:
    conditions, which are such sources, optionally preceded by ``not``.
    """

    name: Name = "step"
    flow: str | None = None
    purpose: str = ""
    slots: Mapping[str, Json] = Field(default_factory=dict[str, Json])
    needs: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    optional: bool = False
    tell: bool = False
    otherwise: str = ""


class FreshnessEntry(Entry):
    """The maximum age, in turns, of the summary or memory that a flow needs, and how to refresh it (IF-13)."""

    turns: Annotated[int, Field(ge=1)]
    of: Kept = Kept.SUMMARY
    otherwise: WhenStale = WhenStale.FLAG
    wait_s: Annotated[float, Field(gt=0, le=60)] = 2.0


class FlowEntry(Entry):
    """A flow.

    Attributes:
        changes: the flow whose result this flow changes. If the user corrects that result, this flow starts.
        events: external events and reminders that start the flow.
        policy: a class in the domain's policies. Default: the class with the flow's `dact`.
        plan: the steps of a Plan flow.
        options: options of the flow's policy.
    """

    dax: str | None = None
    intent: str | None = None
    description: str = ""
    examples: tuple[str, ...] = ()
    slots: Mapping[Name, SlotEntry] = Field(default_factory=dict[str, SlotEntry])
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    edge_flows: tuple[str, ...] = ()
    changes: str | None = None
    events: tuple[Name, ...] = ()
    fallback: str | None = None
    tools: tuple[ToolUseEntry, ...] = ()
    confirm: bool = False
    mode: Mode = Mode.AUTO
    reflect: bool = False
    freshness: FreshnessEntry | None = None
    policy: str | None = None
    plan: tuple[StepEntry, ...] = ()
    options: JsonObject = Field(default_factory=JsonObject)


class EntityValueEntry(Entry):
    name: str = ""
    aliases: tuple[str, ...] = ()
    metadata: JsonObject = Field(default_factory=JsonObject)


def _spread_values(values: Json) -> Json:
    """Expand the short forms: a list of values, or a value with a list of aliases."""
    if is_list(values):
        is_short = all(isinstance(value, str) for value in values)
        return {str(value): JsonObject() for value in values} if is_short else values
    if is_object(values):
        return {
            key: {"aliases": entry} if is_list(entry) else entry or JsonObject()
            for key, entry in values.items()
        }
    return values


class EntityEntry(Entry):
    """An entity, with values in the file or from `provider`.

    `provider`: a callable in services.py that receives `options`. `learned_from`: a flow output, which is an
    object with the session's values by entity.
    """

    values: Annotated[Mapping[str, EntityValueEntry], BeforeValidator(_spread_values)] = Field(
        default_factory=dict[str, EntityValueEntry]
    )
    provider: str | None = None
    options: JsonObject = Field(default_factory=JsonObject)
    learned_from: Name | None = None

    @model_validator(mode="before")
    @classmethod
    def _take_bare_values(cls, entry: Json) -> Json:
        """Expand ``city: [Oslo, Madrid]``, the short form of an entity's values."""
        return {"values": entry} if is_list(entry) else entry


SmallTalkName = Literal["thanks", "goodbye", "complaint", "who_are_you", "how_are_you", "certainty", "repeat"]
"""Kinds of small talk that every assistant answers. A domain's answer with the same name takes precedence."""


PageWish = Literal["next", "more", "previous", "first", "last", "number"]
"""Kinds of requests for another page of a table. `more` doesn't name the table, its rows or its pages."""


class LexiconFile(Entry):
    """A language's words with their English equivalents. Alternatives are separated by bars.

    Attributes:
        agree: messages that confirm (PX-18).
        refuse: messages that refuse.
        courtesies: words that can accompany a confirmation or a refusal.
        talk: small talk, by kind.
        pages: requests for another page of a table, with “#” for a number.
        patterns: replacements by regular expression, applied before words are looked up.
        words: words of the language, by English equivalent.
        examples: example messages, by flow or answer.
    """

    agree: tuple[str, ...] = ()
    refuse: tuple[str, ...] = ()
    courtesies: tuple[str, ...] = ()
    talk: Mapping[SmallTalkName, tuple[str, ...]] = Field(
        default_factory=dict[SmallTalkName, tuple[str, ...]]
    )
    pages: Mapping[PageWish, tuple[str, ...]] = Field(default_factory=dict[PageWish, tuple[str, ...]])
    patterns: Mapping[Pattern, str] = Field(default_factory=dict[str, str])
    words: Mapping[str, str] = Field(default_factory=dict[str, str])
    examples: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])


class SlotTypeEntry(Entry):
    """A custom slot type, defined by `pattern` or by `validator`, a callable in services.py."""

    description: str = ""
    pattern: Pattern | None = None
    uppercase: bool = False
    validator: str | None = None


class AnswerEntry(Entry):
    """A fixed answer to a question. `digression`: the kind of question, or None for small talk."""

    examples: tuple[str, ...] = ()
    text: str = ""
    digression: Digression | None = None


FAMILIES_TO_NAME = Literal["Read", "Prepare", "Transform", "Schedule"]


class OntologyFile(Entry):
    """The ontology.

    `intents`: the domain's names for four flow families. `acts`: the digit of each primitive act in daxes.
    Default: the shared acts.
    """

    acts: Mapping[Name, str] = Field(default_factory=dict[str, str])
    intents: Mapping[FAMILIES_TO_NAME, str] = Field(default_factory=dict[FAMILIES_TO_NAME, str])
    slot_types: Mapping[Name, SlotTypeEntry] = Field(default_factory=dict[str, SlotTypeEntry])
    entities: Mapping[Name, EntityEntry] = Field(default_factory=dict[str, EntityEntry])
    flows: Mapping[Name, FlowEntry] = Field(default_factory=dict[str, FlowEntry])
    answers: Mapping[Name, AnswerEntry] = Field(default_factory=dict[str, AnswerEntry])


class SkillEntry(Entry):
    """The front matter of a SKILL.md file.

    The Agent Skills format also has `license`, `compatibility` and `metadata`, which are ignored.

    Attributes:
        tools: tools of the skill's flow that the skill can use. Default: all of them.
        components: built-in tools, from `COMPONENT_NAMES`.
        reflect: True if the model reviews its result. Default: the flow's setting.
        stream: the key of the streamed text in `result`. Default: nothing is streamed.
    """

    name: str = ""
    description: str = ""
    criteria: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    components: tuple[str, ...] = ()
    language: Language | None = None
    reflect: bool | None = None
    result: JsonObject | None = None
    stream: str | None = None
    license: str = ""
    compatibility: str = ""
    metadata: JsonObject = Field(default_factory=JsonObject)
