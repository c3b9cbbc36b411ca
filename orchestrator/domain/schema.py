"""The shape of a domain's YAML files. References between entries are checked in `compile`.

Every key has a default: an entry that lacks or breaks one can still be checked in all its other
parts, so that every mistake is found in one run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    model_validator,
)

from orchestrator.dialogue.specification import Kept, Mode, Priority, WhenStale
from orchestrator.dialogue.understanding import Digression
from orchestrator.domain.configuration import Pattern
from orchestrator.domain.guarding import Language
from orchestrator.types import Json, JsonObject, is_list, is_object

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TOOL_ID = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")


def _check_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("is no name: use small letters, digits and _, beginning with a letter")
    return value


def _check_tool_id(value: str) -> str:
    if not _TOOL_ID.fullmatch(value):
        raise ValueError("is no tool_id: use entity_verb, for example flight_search")
    return value


Name = Annotated[str, AfterValidator(_check_name)]
ToolName = Annotated[str, AfterValidator(_check_tool_id)]


class Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class SlotEntry(Entry):
    """`synonyms`: what people say for each of `values`. `pattern`: of exact.

    `open`: values that `entity` does not list are possible too; the tool knows them all.
    `samples`: what fills the slot's place in examples, where no list of values says it. `counts`: people are
    counted when they are named. `part_of_day`: what hours are meant by a time without "am" or "pm".
    `same_as`: what other flows call this value, as ``slot`` or ``flow.slot``. `grounded`: a model may only name
    what somebody has said or displayed. `not_before`: another day, before which this one may not be.
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

    `slots`: for each slot a slot of the plan, ``step.output``, or ``{value: …}``. Conditions are
    bindings, with ``not`` before them to turn them round.
    """

    name: Name = "step"
    flow: str | None = None
    purpose: str = ""
    slots: Mapping[str, Json] = Field(default_factory=dict[str, Json])
    needs: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    joins_when: tuple[str, ...] = ()
    optional: bool = False
    tell: bool = False
    otherwise: str = ""


class FreshnessEntry(Entry):
    """How old a summary, or what is remembered, may be for a flow, in turns, and what else is done (IF-13)."""

    turns: Annotated[int, Field(ge=1)]
    of: Kept = Kept.SUMMARY
    otherwise: WhenStale = WhenStale.FLAG
    wait_s: Annotated[float, Field(gt=0, le=60)] = 2.0


class FlowEntry(Entry):
    """`policy`: a class of the domain's policies, where it is not found by its `dact`.
    `options`: whatever the flow's policy reads. `plan`: of Plan flows, the steps.
    """

    dax: str | None = None
    intent: str | None = None
    description: str = ""
    examples: tuple[str, ...] = ()
    slots: Mapping[Name, SlotEntry] = Field(default_factory=dict[str, SlotEntry])
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    edge_flows: tuple[str, ...] = ()
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
    """Read the short forms: a list of values, or a value with the list of its aliases."""
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
    """Known values in the file, or from `provider`: a callable of services.py, called with `options`.

    `learned_from`: an output of flows, an object with the session's own values by entity.
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
        """``city: [Oslo, Madrid]`` is short for its values."""
        return {"values": entry} if is_list(entry) else entry


class LexiconFile(Entry):
    """What words of a language are in English. `words`: by the English, parted by bars. `examples`: by flow or answer.

    `patterns`: regular expressions with what takes their place, before words are looked up.
    """

    patterns: Mapping[Pattern, str] = Field(default_factory=dict[str, str])
    words: Mapping[str, str] = Field(default_factory=dict[str, str])
    examples: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])


class SlotTypeEntry(Entry):
    """A slot type of the domain's own: by `pattern`, or by `validator`, a callable of services.py."""

    description: str = ""
    pattern: Pattern | None = None
    uppercase: bool = False
    validator: str | None = None


class AnswerEntry(Entry):
    """What is said to a question that changes nothing; `digression` names its kind."""

    examples: tuple[str, ...] = ()
    text: str = ""
    digression: Digression | None = None


FAMILIES_TO_NAME = Literal["Read", "Prepare", "Transform", "Schedule"]


class OntologyFile(Entry):
    """`intents`: the domain's names for the four families that it may name."""

    intents: Mapping[FAMILIES_TO_NAME, str] = Field(default_factory=dict[FAMILIES_TO_NAME, str])
    slot_types: Mapping[Name, SlotTypeEntry] = Field(default_factory=dict[str, SlotTypeEntry])
    entities: Mapping[Name, EntityEntry] = Field(default_factory=dict[str, EntityEntry])
    flows: Mapping[Name, FlowEntry] = Field(default_factory=dict[str, FlowEntry])
    answers: Mapping[Name, AnswerEntry] = Field(default_factory=dict[str, AnswerEntry])


Tag = Literal["accesses_private_data", "receives_untrusted_input", "communicates_externally"]


class HttpEntry(Entry):
    """``{city}`` stands for an input, ``${API_KEY}`` for an environment variable.

    `url` may name inputs in its path; `query` and `headers` inputs and variables. `query` and `body`:
    what stands for one input alone keeps its type; what names an input that is not given is left
    out. Without them, inputs that nothing else uses go into the query of GET and DELETE, and into the
    JSON body otherwise. `wrap_as`: the name under which an answer that is no object is given.
    """

    url: str = ""
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    query: Mapping[str, str] | None = None
    body: JsonObject | None = None
    wrap_as: str | None = None


class McpEntry(Entry):
    """A tool of an MCP server, which is reached by `url` or started by `command`.

    `headers`: of `url`, may name environment variables. `environment`: the variables that the
    started server gets to see.
    """

    tool: str = ""
    url: str | None = None
    command: tuple[str, ...] = ()
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    environment: tuple[str, ...] = ()


class FieldEntry(Entry):
    """What people say for a row with less, or more, of a field than another: cheaper, later."""

    less: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


class RowsEntry(Entry):
    """The rows that a tool gives for people to choose from: see `model.RowsSpec` (IR-5)."""

    output: str = ""
    key: str = ""
    fields: Mapping[Name, FieldEntry] = Field(default_factory=dict[str, FieldEntry])
    most: PositiveInt = 20


class ToolEntry(Entry):
    """One entry of the manifest (PX-8): exactly one of `service`, `http`, `mcp` implements it."""

    name: str = ""
    description: str = ""
    service: str | None = None
    http: HttpEntry | None = None
    mcp: McpEntry | None = None
    input_schema: JsonObject = Field(default_factory=JsonObject)
    output_schema: JsonObject = Field(default_factory=JsonObject)
    idempotent: bool = False
    effect: bool | None = None
    confirm: bool = False
    timeout_ms: PositiveInt | None = None
    tags: tuple[Tag, ...] = ()
    requires_approval: bool = False
    approval: Literal["user", "operator"] | None = None
    approval_above: Mapping[Name, float] = Field(default_factory=dict[str, float])
    max_retries: NonNegativeInt | None = None
    rate_limit_rpm: PositiveInt | None = None
    cache_ttl_ms: NonNegativeInt = 0
    compensation: str | None = None
    status_query: str | None = None
    rows: RowsEntry | None = None


class SkillEntry(Entry):
    """The front matter of a SKILL.md. `tools`: some of its flow's; left out, all of them. `stream`: a text of `result`.

    `license`, `compatibility`, `metadata`: of the Agent Skills format; not read.
    """

    name: str = ""
    description: str = ""
    criteria: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    language: Language | None = None
    reflect: bool | None = None
    result: JsonObject | None = None
    stream: str | None = None
    license: str = ""
    compatibility: str = ""
    metadata: JsonObject = Field(default_factory=JsonObject)


class ToolsFile(Entry):
    tools: Mapping[ToolName, ToolEntry] = Field(default_factory=dict[str, ToolEntry])
