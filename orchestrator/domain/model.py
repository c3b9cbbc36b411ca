"""A compiled domain: everything the modules need to know about one, checked and frozen.

Records only. `compile` makes one from the checked YAML; policies and services are attached by
`bootstrap`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from re import Pattern
from typing import Literal

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.slots import EVERY_TYPE, SlotTypes
from orchestrator.dialogue.specification import Family
from orchestrator.dialogue.understanding import Digression
from orchestrator.domain.configuration import DomainConfig
from orchestrator.domain.guarding import Language
from orchestrator.domain.reader import Reader
from orchestrator.domain.schema import LexiconFile
from orchestrator.types import Dact, Json, JsonObject, ToolId, is_object

TEMPLATE_FILTERS = frozenset({"day", "time", "money", "name", "counted"})
"""What a domain's templates may use besides Jinja's own filters."""


class Implementation(StrEnum):
    SERVICE = "service"
    """`target`: ``ClassName.method`` of the domain's services.py."""
    HTTP = "http"
    MCP = "mcp"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """What people say for a row with less, or more, of a field than another."""

    less: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowsSpec:
    """The rows that a tool gives for people to choose from (IR-5).

    `output`: the one that holds them. `key`: the field that identifies a row, and that another flow takes as a
    slot or input of that name. `fields`: those by which people name a row. `most`: so many are displayed.
    """

    output: str
    key: str
    fields: Mapping[str, FieldSpec] = field(default_factory=dict[str, FieldSpec])
    most: int = 20
    cues: frozenset[str] = field(init=False)
    """The words with which what compares rows begins: "cheaper", "less expensive"."""

    def __post_init__(self) -> None:
        said = (words for one in self.fields.values() for words in (*one.less, *one.more))
        object.__setattr__(self, "cues", frozenset(words.partition(" ")[0] for words in said))


@dataclass(frozen=True)
class ToolSpec:
    """One entry of the manifest (PX-8). Times in milliseconds.

    `idempotent`: it may be tried again. `effect`: it changes something that lasts; left out, what may not be
    tried again does. `confirm`: it asks for a yes first, whichever flow calls it.
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
    requires_approval: bool = False
    approval_above: Mapping[str, float] = field(default_factory=dict[str, float])
    """Name of an input, or of what the flow has found → the most that needs no approval."""
    approval: Literal["user", "operator"] | None = None
    """Who may grant an approval; None: as the domain says."""
    effect: bool | None = None
    confirm: bool = False
    max_retries: int = 2
    rate_limit_rpm: int | None = None
    cache_ttl_ms: int = 0
    compensation: ToolId | None = None
    status_query: ToolId | None = None
    rows: RowsSpec | None = None
    options: JsonObject = field(default_factory=JsonObject)
    """Of the implementation: URL, method, headers; MCP server and its command."""

    @property
    def has_effect(self) -> bool:
        """Say whether a call changes something that lasts."""
        return not self.idempotent if self.effect is None else self.effect

    @cached_property
    def fields(self) -> JsonObject:
        """What the output schema declares of each field, also of rows in lists."""
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


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """What a language model is told and given to carry out one flow (PX-5).

    `criteria`: what makes a result good, for reflection. `language`: of the code that it writes.
    `result`: JSON Schema of the data that it ends with. `stream`: the text of it that is told while it is written.
    """

    dact: Dact
    description: str
    instructions: str
    criteria: tuple[str, ...] = ()
    tools: tuple[ToolId, ...] = ()
    language: Language | None = None
    reflect: bool = False
    result: JsonObject | None = None
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class EntityValue:
    """One known value: `canonical` is what slots hold, `aliases` what people say."""

    canonical: str
    name: str
    aliases: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=JsonObject)


@dataclass(frozen=True, slots=True)
class Entity:
    """A gazetteer: the valid values of one key entity.

    `learned_from`: the output of flows that tells which values a session has besides, by entity.
    """

    name: str
    values: tuple[EntityValue, ...]
    learned_from: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A declared answer to a question that changes nothing on the stack.

    `digression`: the kind of question it answers; None for chit-chat such as greetings.
    """

    name: str
    examples: tuple[str, ...]
    text: str
    digression: Digression | None = None


@dataclass(frozen=True, slots=True)
class Domain:
    """`templates`: by file name without ``.md.j2``. `skills`: by the flow that they carry out."""

    name: str
    folder: str
    config: DomainConfig
    intents: Mapping[str, Family]
    flows: Mapping[Dact, type[BaseFlow]]
    entities: Mapping[str, Entity]
    tools: Mapping[ToolId, ToolSpec]
    answers: tuple[Answer, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict[str, str])
    skills: Mapping[Dact, SkillSpec] = field(default_factory=dict[Dact, SkillSpec])
    slot_types: SlotTypes = EVERY_TYPE
    slot_patterns: Mapping[str, Pattern[str]] = field(default_factory=dict[str, Pattern[str]])
    """What values of the domain's own slot types look like in a text, by name of the type."""
    reader: Reader | None = None
    """Reads messages before what was learnt is asked."""
    lexicons: Mapping[str, tuple[LexiconFile, ...]] = field(
        default_factory=dict[str, tuple[LexiconFile, ...]]
    )
    """By code of a language."""

    @property
    def lexicon(self) -> tuple[LexiconFile, ...]:
        """Pick the words of the language that is spoken here; none for English, and for one without such files."""
        return self.lexicons.get(self.config.language.default, ())
