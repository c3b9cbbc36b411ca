"""The schema of a domain's YAML files. `compile` checks references between entries.

Every key has a default, so that one run finds all problems, even after a missing or invalid key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from orchestrator.dialogue.specification import Kept, Mode, Priority, WhenStale
from orchestrator.dialogue.understanding import Digression
from orchestrator.domain.guarding import Language
from orchestrator.domain.sections import Pattern
from orchestrator.types import Json, JsonObject, is_list, is_object

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TOOL_ID = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")


def _check_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("is not a valid name: use lowercase letters, digits and _, starting with a letter")
    return value


def _check_tool_id(value: str) -> str:
    if not _TOOL_ID.fullmatch(value):
        raise ValueError("is not a valid tool_id: use entity_verb, for example flight_search")
    return value


Name = Annotated[str, AfterValidator(_check_name)]
ToolName = Annotated[str, AfterValidator(_check_tool_id)]


class Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    def fill(self, record: type[Record], **more: Any) -> Record:
        """Create a record from the fields with the same names. `more`: its other fields."""
        shared = {one.name for one in fields(record)} & type(self).model_fields.keys()
        return record(**{name: getattr(self, name) for name in shared} | more)


class SlotEntry(Entry):
    """A slot of a flow.

    Attributes:
        open: True if the slot also accepts values that `entity` does not list.
        counts: the objects to count when a message names them.
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
    """Maximum age of a summary or of memories for a flow, in turns, and the way to refresh them (IF-13)."""

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

    `provider`: a callable in services.py that receives `options`.

    `learned_from`: a flow output, which is an object with the session's values by entity.
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
        words: words, by English equivalent.
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
    """A fixed answer to a question. `digression`: the kind of question."""

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


Tag = Literal["accesses_private_data", "receives_untrusted_input", "communicates_externally"]


class HttpEntry(Entry):
    """An HTTP endpoint. ``{city}`` is an input, ``${API_KEY}`` an environment variable.

    ``{user_id}`` and ``{session_id}`` are those of the caller; ``{callback_url}`` receives the result of a
    tool with `later`.

    In `query` and `body`, a value that is only one input keeps its type, and a value with a missing input is
    omitted. By default, remaining inputs go into the query for GET and DELETE, or into the body for other
    methods.

    Attributes:
        url: the URL, which can use inputs in its path.
        headers: headers, which can use inputs and variables.
        query: query parameters, which can use inputs and variables.
        wrap_as: the output name for a response that is not an object.
        errors: messages to the user by status, for calls that were certainly not executed. They can use
        inputs.
    """

    url: str = ""
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    query: Mapping[str, str] | None = None
    body: JsonObject | None = None
    wrap_as: str | None = None
    errors: Mapping[int, str] = Field(default_factory=dict[int, str])


class McpEntry(Entry):
    """A tool of an MCP server, which is reached by `url` or started by `command`.

    `headers`: headers for `url`, which can use environment variables. `environment`: names of the variables
    that are passed to the started server.
    """

    tool: str = ""
    url: str | None = None
    command: tuple[str, ...] = ()
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    environment: tuple[str, ...] = ()


class FieldSpec(Entry):
    """Comparative words for a row field: `less` and `more`, such as “cheaper” and “more expensive”."""

    less: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


class RowsSpec(Entry):
    """The rows in a tool's result from which users choose (IR-5).

    Attributes:
        output: the output with the rows.
        key: the identifying field, which another flow accepts as a slot or input of that name.
        fields: the fields by which users refer to a row.
        most: maximum number of displayed rows.
    """

    output: str = ""
    key: str = ""
    fields: Mapping[Name, FieldSpec] = Field(default_factory=dict[str, FieldSpec])
    most: PositiveInt = 20

    @cached_property
    def cues(self) -> frozenset[str]:
        """Return the words that start a comparison of rows: "cheaper", "less expensive"."""
        said = (words for one in self.fields.values() for words in (*one.less, *one.more))
        return frozenset(words.partition(" ")[0] for words in said)


class LaterSpec(Entry):
    """Time limits of a tool that may accept a call and answer later (RT-32).

    `expires_s`: seconds until the user is asked what to do. `poll_s`: seconds between status queries, or None for
    a single query before the call expires.
    """

    expires_s: PositiveFloat = 86_400.0
    poll_s: PositiveFloat | None = None

    @property
    def first_look_s(self) -> float:
        return min(self.poll_s or self.expires_s, self.expires_s)


class ToolEntry(Entry):
    """A tool of the manifest (PX-8). Exactly one of `service`, `http` and `mcp` implements it."""

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
    trusted: str | None = None
    """Reason why a remote tool neither sends data out nor returns untrusted text.

    Default: the tool does both (PX-3).
    """
    requires_approval: bool = False
    approval: Literal["user", "operator"] | None = None
    approval_above: Mapping[Name, float] = Field(default_factory=dict[str, float])
    max_retries: NonNegativeInt | None = None
    rate_limit_rpm: PositiveInt | None = None
    cache_ttl_ms: NonNegativeInt = 0
    compensation: str | None = None
    status_query: str | None = None
    rows: RowsSpec | None = None
    later: LaterSpec | None = None


class SkillEntry(Entry):
    """The front matter of a SKILL.md file.

    The Agent Skills format also has `license`, `compatibility` and `metadata`, which are ignored.

    Attributes:
        tools: tools of the skill's flow that the skill can use. Default: all of them.
        components: built-in tools, from `COMPONENT_NAMES`.
        stream: the key of a text in `result`.
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


class ToolsFile(Entry):
    tools: Mapping[ToolName, ToolEntry] = Field(default_factory=dict[str, ToolEntry])
