"""The records of a compiled domain, checked and frozen.

`compile` creates the records from the domain's files. They contain neither policies nor services.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from re import Pattern
from typing import Literal

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.slots import EVERY_TYPE, SlotTypes
from orchestrator.dialogue.understanding import Digression
from orchestrator.domain.configuration import DomainConfig
from orchestrator.domain.guarding import Language
from orchestrator.domain.schema import LexiconFile
from orchestrator.domain.tool_schema import LaterSpec, RowsSpec
from orchestrator.types import Dact, Json, JsonObject, ToolId, is_list, is_object

TEMPLATE_FILTERS = frozenset({"day", "month", "time", "money", "name", "counted", "grouped", "joined"})
"""Template filters in addition to Jinja's."""

TEMPLATE_VARIABLES = frozenset(
    {
        *("flow", "doing", "slots", "values", "data", "outputs", "facts", "found", "rows"),
        *("warning", "display", "now", "persona"),
    }
)
"""Variables for the template of a completed flow."""


class Implementation(StrEnum):
    SERVICE = "service"
    """A method in the domain's services.py, with the `target` ``ClassName.method``."""
    HTTP = "http"
    MCP = "mcp"


@dataclass(frozen=True)
class ToolSpec:
    """A tool in the manifest (PX-8).

    `idempotent`: True if calls can be retried. `effect`: True if calls have a side effect. Default: True
    unless `idempotent`. `confirm`: True if calls need a confirmation in every flow.
    """

    tool_id: ToolId
    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject
    idempotent: bool
    timeout_ms: int
    implementation: Implementation
    target: str
    accesses_private_data: bool = False
    receives_untrusted_input: bool = False
    communicates_externally: bool = False
    assumed: tuple[str, ...] = ()
    """Tags that a remote tool gets by default (PX-3)."""
    requires_approval: bool = False
    approval_above: Mapping[str, float] = field(default_factory=dict[str, float])
    """Maximum values that need no approval, by the name of a tool input or output."""
    approval: Literal["user", "operator"] | None = None
    """Role that can grant an approval. Default: the domain's setting."""
    effect: bool | None = None
    confirm: bool = False
    max_retries: int = 2
    rate_limit_rpm: int | None = None
    cache_ttl_ms: int = 0
    compensation: ToolId | None = None
    status_query: ToolId | None = None
    rows: RowsSpec | None = None
    later: LaterSpec | None = None
    options: JsonObject = field(default_factory=JsonObject)
    """Options of the implementation, such as an HTTP method and headers, or an MCP server's command."""

    @property
    def has_effect(self) -> bool:
        return not self.idempotent if self.effect is None else self.effect

    @cached_property
    def fields(self) -> JsonObject:
        """Return the schemas of all output fields by name, including fields in nested objects and rows."""
        found: JsonObject = {}
        schemas: list[Json] = [self.output_schema]
        while schemas:
            schema = schemas.pop()
            properties = schema.get("properties") if is_object(schema) else None
            for name, body in properties.items() if is_object(properties) else ():
                if is_object(body):
                    found.setdefault(name, body)
                    schemas += [body, body.get("items")]
        return found


COMPONENT_NAMES = ("context_coordinator", "memory_manager", "flow_stack")
"""Built-in tools that a skill can use: for history, for memory, and for flows' slot values and results."""


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """The instructions and tools that a language model uses to execute a flow (PX-5).

    Attributes:
        criteria: the conditions that a result must meet when the model reviews it.
        components: built-in tools, from `COMPONENT_NAMES`.
        language: the language of the code that the skill writes, or None.
        reflect: True if the model reviews its result.
        result: the JSON Schema of the result. Default: any JSON object.
        stream: the key of the streamed text in the result, or None to stream nothing.
    """

    dact: Dact
    description: str
    instructions: str
    criteria: tuple[str, ...] = ()
    tools: tuple[ToolId, ...] = ()
    components: tuple[str, ...] = ()
    language: Language | None = None
    reflect: bool = False
    result: JsonObject | None = None
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class EntityValue:
    """A known value. Slots store `canonical`; users say `name` or one of the `aliases`."""

    canonical: str
    name: str
    aliases: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=JsonObject)


def columns_of(metadata: JsonObject) -> tuple[str, ...] | None:
    """Return a table's columns, or None if the metadata doesn't describe a table."""
    columns = metadata.get("columns")
    return tuple(str(column) for column in columns) if is_list(columns) else None


@dataclass(frozen=True)
class Entity:
    """An entity with its valid values.

    `learned_from`: a flow output that contains the session's own values by entity, or None.
    """

    name: str
    values: tuple[EntityValue, ...]
    learned_from: str | None = None

    @cached_property
    def by_canonical(self) -> Mapping[str, EntityValue]:
        return {value.canonical: value for value in self.values}

    @cached_property
    def tables(self) -> Mapping[str, tuple[str, ...]]:
        """Return the columns by table name, for all values that describe tables."""
        read = {value.canonical: columns_of(value.metadata) for value in self.values}
        return {name: columns for name, columns in read.items() if columns is not None}


@dataclass(frozen=True, slots=True)
class Answer:
    """A declared answer to a question, which leaves the stack unchanged.

    `digression`: the kind of question, or None for small talk such as greetings.
    """

    name: str
    examples: tuple[str, ...]
    text: str
    digression: Digression | None = None


@dataclass(frozen=True, slots=True)
class Domain:
    """A compiled domain. `templates`: texts by file name without ``.md.j2``. `acts`: act names by dax digit."""

    name: str
    folder: str
    config: DomainConfig
    flows: Mapping[Dact, type[BaseFlow]]
    entities: Mapping[str, Entity]
    tools: Mapping[ToolId, ToolSpec]
    answers: tuple[Answer, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict[str, str])
    skills: Mapping[Dact, SkillSpec] = field(default_factory=dict[Dact, SkillSpec])
    slot_types: SlotTypes = EVERY_TYPE
    slot_patterns: Mapping[str, Pattern[str]] = field(default_factory=dict[str, Pattern[str]])
    """Patterns of the domain's own slot types, by type name."""
    acts: Mapping[str, str] = field(default_factory=dict[str, str])
    lexicons: Mapping[str, tuple[LexiconFile, ...]] = field(
        default_factory=dict[str, tuple[LexiconFile, ...]]
    )
    """Lexicons by language code."""

    @property
    def events(self) -> Mapping[str, Dact]:
        """Return the flow that each external event starts, by event name."""
        return {name: dact for dact, flow in self.flows.items() for name in flow.spec.events}

    @property
    def lexicon(self) -> tuple[LexiconFile, ...]:
        """Return the lexicons for the domain's language, or an empty tuple."""
        return self.lexicons.get(self.config.language.default, ())
