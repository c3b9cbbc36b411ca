"""A domain's configuration: sections over shared defaults, validated, frozen (CO-5).

The defaults themselves are in ``defaults.yaml`` beside this file and nowhere else; whoever reads
files hands both parts over as plain data.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from orchestrator.domain.guarding import HARMLESS_MODULES, is_importable
from orchestrator.types import Json, JsonObject, is_object


def _read_switch(value: Json) -> Json:
    """YAML reads a bare ``off`` or ``on`` as a boolean; both spellings mean the word."""
    return {False: "off", True: "on"}[value] if isinstance(value, bool) else value


def _check_pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return value


def _check_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("is no time zone, such as Europe/Oslo or UTC") from error
    return value


def _check_module(value: str) -> str:
    if not is_importable(value):
        raise ValueError(
            "cannot be allowed: only harmless modules of the standard library can: "
            + ", ".join(sorted(HARMLESS_MODULES))
        )
    return value


Switch = Annotated[Literal["off", "on", "auto"], BeforeValidator(_read_switch)]
Pattern = Annotated[str, AfterValidator(_check_pattern)]
Module = Annotated[str, AfterValidator(_check_module)]
TimeZone = Annotated[str, AfterValidator(_check_zone)]
Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A part of the configuration: frozen, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Persona(Section):
    """Who speaks. `greeting` opens a conversation; `tone` goes into prompts only."""

    name: str
    tone: str
    greeting: str


class Language(Section):
    """ISO 639-1 codes. Messages in other languages are turned away by `prepare` (NL-1)."""

    default: str
    supported: tuple[str, ...]


class ModelName(Section):
    """A model, and the endpoint that has it."""

    model: str
    provider: str = "default"


ModelReference = Annotated[
    ModelName | None, BeforeValidator(lambda value: {"model": value} if isinstance(value, str) else value)
]


class ModelPrice(Section):
    """What a million tokens cost, in the currency of the cost budgets."""

    prompt: NonNegativeFloat
    completion: NonNegativeFloat


class Models(Section):
    """Which model answers which prompt; None is the model that the environment names.

    `per_prompt`, `max_tokens_per_prompt`: by prompt identifier, for example ``nlu_think``. `prices`:
    by model; without one a call costs nothing.
    """

    default: ModelReference
    fallback: ModelReference
    per_prompt: Mapping[str, ModelReference]
    timeout_s: PositiveFloat
    """Of one request."""
    stream_timeout_s: PositiveFloat
    patience_s: PositiveFloat
    """The longest that one question may take, with retries, repair and the fallback model."""
    max_tokens: PositiveInt
    max_tokens_per_prompt: Mapping[str, PositiveInt]
    temperature: float | None
    strict_schemas: bool
    """Whether the endpoint is told to enforce schemas; not every endpoint can."""
    prices: Mapping[str, ModelPrice]


class Voters(Section):
    """Rounds of voting models; `rounds` are the numbers of voters heard in each (NL-3)."""

    enabled: bool
    models: tuple[str, ...]
    rounds: tuple[PositiveInt, ...]


class Understanding(Section):
    """How messages are understood (NL-2, NL-3)."""

    mode: Literal["system1", "system2", "auto"]
    slot_fill: Switch
    """Whether a model looks for missing values in earlier turns; `auto`: when a task begins (PX-4)."""
    voters: Voters


class Thresholds(Section):
    """Scores are shares of 1; sizes are tokens."""

    confident: Share
    """From here on System 1 decides alone under `auto`."""
    likely: Share
    """Below, no flow is likely enough: general ambiguity."""
    stream_threshold_tokens: PositiveInt
    """Answers longer than this are streamed."""


class Session(Section):
    deadline_s: PositiveFloat
    """The longest that one attempt at a turn may take; `PARLEY_TURN_DEADLINE_S` bounds all of them together."""
    if_busy: Literal["enqueue", "reject", "interrupt", "rollback", "merge", "understand"]
    """Of sessions that are made without a rule of their own: what a turn does while another is unfinished."""
    timezone: TimeZone
    """Where the users are, by its name in the IANA database: whose day “today” is."""


class Memory(Section):
    """Bounds of the working state and of the memory tiers."""

    max_history_messages: PositiveInt
    max_trace_entries: PositiveInt
    completed_flows: PositiveInt
    snapshot_every_turns: PositiveInt


class FlowManagement(Section):
    """`max_stack_depth` None: unlimited (FS-12). `abandon_after_s`: FS-13."""

    max_stack_depth: PositiveInt | None
    on_limit_reached: Literal["cancel_oldest", "reject_new", "ask_user"]
    abandon_after_s: PositiveInt
    keep_going_budget: PositiveInt
    """How often one turn may repeat PEX and RES."""


class AmbiguitySection(Section):
    escalation_turns: PositiveInt
    max_choices: PositiveInt


class Resilience(Section):
    max_recovery_attempts: NonNegativeInt
    repair_attempts: NonNegativeInt
    tool_retries: NonNegativeInt
    tool_timeout_ms: PositiveInt
    """Of tools whose manifest names none."""
    backoff_base_s: NonNegativeFloat
    backoff_max_s: NonNegativeFloat
    skill_overhead_ms: NonNegativeInt
    """What a skill may take besides the time-outs of its tools."""
    skill_rounds: PositiveInt
    """How often a skill may ask its model."""
    skill_calls: PositiveInt
    """How often a skill may call tools."""
    context_wait_s: PositiveFloat
    """How long a flow waits for what Internal flows find."""
    context_in_turn_s: NonNegativeFloat
    """How much of that the turn itself waits; then it ends, and the flow goes on when something is found."""


def _check_network(value: str) -> str:
    ipaddress.ip_network(value)
    return value


class Network(Section):
    """What tools over HTTP and MCP may reach, and how much of an answer is taken in.

    `private_networks`: addresses that are not public and may be reached all the same, for example
    ``127.0.0.0/8``.
    """

    private_networks: tuple[Annotated[str, AfterValidator(_check_network)], ...]
    connect_timeout_s: PositiveFloat
    max_output_bytes: PositiveInt
    """Of any tool: a longer answer is refused."""


class Guardrails(Section):
    max_tokens: PositiveInt
    min_characters: PositiveInt
    reserved_tokens: tuple[str, ...]
    """Text that a message must not hold: markers that models take for roles."""
    max_answer_characters: PositiveInt
    allowed_imports: tuple[Module, ...]
    """What Python that a model wrote may import."""


class Plans(Section):
    model: Switch
    """Whether a model decides on plans. `auto`: where no recipe does, and when a step did not succeed."""
    max_rounds: PositiveInt
    max_sub_flows: PositiveInt
    tree_search: Switch
    tree_candidates: PositiveInt
    tree_variants: PositiveInt
    tree_model_calls: PositiveInt


class Approvals(Section):
    """`by`: who may grant one, where a tool's manifest does not say; anybody concerned may deny it."""

    expires_s: PositiveInt
    by: Literal["user", "operator"]


class Budgets(Section):
    """Upper bounds on what models may use; None: no bound."""

    tokens_per_call: PositiveInt | None
    cost_per_call: PositiveFloat | None
    tokens_per_turn: PositiveInt | None
    tokens_per_session: PositiveInt | None
    tokens_per_day: PositiveInt | None
    cost_per_turn: PositiveFloat | None
    cost_per_session: PositiveFloat | None
    cost_per_day: PositiveFloat | None


class Generation(Section):
    """`naturalize`: whether a model rewrites filled templates (RS-3).

    `auto` does so for prose about completed flows, `on` also for other remarks and for lists; a
    template that holds the comment ``{# naturalize: off #}`` is never rewritten, nor is a question.
    """

    naturalize: Switch
    suggested_replies: NonNegativeInt
    """How many next steps are offered when nothing is open."""
    tell_degraded: bool
    """Whether users are told, once, that no model answers at the moment (RS-5)."""
    page_rows: PositiveInt


class Command(Section):
    """A Tier 0 pattern: a message that matches it whole goes straight to a flow or an answer (NL-1).

    Named groups of the pattern are slot values. `development`: a shortcut for developers only.
    `after`: it counts only while the task that was completed last is one of these.
    """

    pattern: Pattern
    flow: str | None = None
    answer: str | None = None
    after: tuple[str, ...] = ()
    development: bool = False


class DomainConfig(Section):
    """Everything of a domain that is not its ontology and tools. Sections are in `defaults.yaml`."""

    description: str
    persona: Persona
    language: Language
    models: Models
    nlu: Understanding
    thresholds: Thresholds
    session: Session
    memory: Memory
    flow_management: FlowManagement
    ambiguity: AmbiguitySection
    resilience: Resilience
    network: Network
    guardrails: Guardrails
    plans: Plans
    approvals: Approvals
    budgets: Budgets
    generation: Generation
    commands: tuple[Command, ...]
    services: Mapping[str, JsonObject]
    """What each service class of the domain is given as its `config`, by class name."""
    prompts: Mapping[str, str]
    """Prompts in place of those that ship, by file name: those of the folder `prompts/`."""


def merge_sections(defaults: JsonObject, overrides: JsonObject) -> JsonObject:
    """Lay a domain's sections over the defaults: mappings key by key, everything else whole."""
    merged = dict(defaults)
    for key, value in overrides.items():
        known = merged.get(key)
        if is_object(known) and is_object(value):
            merged[key] = merge_sections(known, value)
        elif value is not None or not is_object(known):
            merged[key] = value
    return merged
