"""A domain's configuration: sections merged over shared defaults, validated, frozen (CO-5).

The defaults are only in ``defaults.yaml``; callers that read files pass both parts as plain data.
"""

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
)

from orchestrator.domain.sections import LocaleTag, Module, Pattern, Section, Share, Switch, TimeZone
from orchestrator.types import JsonObject, is_object


class Persona(Section):
    """The assistant's persona."""

    name: str
    """The assistant's name."""
    tone: str
    """Tone of rephrased replies; only prompts use it."""
    greeting: str
    """Opens a conversation."""


class Language(Section):
    """Languages as ISO 639-1 codes. Messages in other languages are rejected."""

    default: str
    """Language of prompts, templates and examples."""
    supported: tuple[str, ...]
    """Languages that users can write in."""


class ModelName(Section):
    """A model and its endpoint."""

    model: str
    provider: str = "default"


ModelReference = Annotated[
    ModelName | None, BeforeValidator(lambda value: {"model": value} if isinstance(value, str) else value)
]


ReasoningEffort = Literal["none", "minimal", "low", "medium", "high"]


class ModelPrice(Section):
    """Price per million tokens, in US dollars."""

    prompt: NonNegativeFloat
    completion: NonNegativeFloat


class Models(Section):
    """Models by prompt. Prompts are named by their ID, for example ``nlu_think``."""

    default: ModelReference
    """A name, or ``{model, provider}``. Default: `PARLEY_MODEL`."""
    fallback: ModelReference
    """Model to use when the default fails. Default: `PARLEY_FALLBACK_MODEL`."""
    per_prompt: Mapping[str, ModelReference]
    """Models of single prompts."""
    timeout_s: PositiveFloat
    """Timeout of one request, in seconds."""
    stream_timeout_s: PositiveFloat
    """Timeout of one streamed request, in seconds."""
    patience_s: PositiveFloat
    """Total timeout of one question, including retries, repair and the fallback model."""
    max_tokens: PositiveInt
    """Maximum length of an answer."""
    max_tokens_per_prompt: Mapping[str, PositiveInt]
    """Maximum length of an answer to single prompts."""
    effort: ReasoningEffort | None
    """Reasoning effort: `none`, `minimal`, `low`, `medium` or `high`. Default: the prompt's own, or the model's."""
    effort_per_prompt: Mapping[str, ReasoningEffort]
    """Reasoning effort of single prompts."""
    temperature: float | None
    """Sampling temperature. Default: the model's."""
    """Write schemas in OpenAI's strict form, which not every endpoint supports."""
    prices: Mapping[str, ModelPrice]
    """Prices in US dollars per million tokens by model, ``{prompt, completion}``, instead of the list price."""


class Understanding(Section):
    """Interpretation of messages."""

    mode: Literal["system1", "system2", "auto"]
    """`system1`: local classifier. `system2`: language model. `auto`: the model while it responds."""
    slot_fill: Switch
    """Allow a model to search earlier turns for missing values. `auto`: only when a task starts."""


class Thresholds(Section):
    """Scores are from 0 to 1; sizes are in tokens."""

    confident: Share
    """Minimum score at which the local classifier is confident about a mid-turn message."""
    likely: Share
    """Minimum score of a flow; below it, the assistant asks what the user means."""
    stream_threshold_tokens: PositiveInt
    """Longer answers are streamed."""


class Session(Section):
    """Defaults of new sessions."""

    deadline_s: PositiveFloat
    """Maximum duration of one attempt at a turn; `PARLEY_TURN_DEADLINE_S` limits all attempts together."""
    if_busy: Literal["enqueue", "reject", "interrupt", "rollback", "understand"]
    """Default rule of new sessions for a turn that arrives while another is unfinished."""
    timezone: TimeZone
    """Default time zone of users, by IANA name: whose day “today” is."""
    locale: LocaleTag | None
    """Default locale of users, for numbers, dates and amounts. `null`: English formats."""


class Memory(Section):
    """Limits of the session state."""

    max_history_messages: PositiveInt
    """Messages in the state."""
    max_trace_entries: PositiveInt
    """Entries of the trace in the state."""
    completed_flows: PositiveInt
    """Completed flows in the state; older ones are archived."""
    snapshot_every_turns: PositiveInt
    """Turns between full copies of the state in the history."""


class FlowManagement(Section):
    """Limits of the flow stack."""

    max_stack_depth: PositiveInt | None
    """Maximum number of open tasks; a plan counts as one. Default: unlimited."""
    on_limit_reached: Literal["cancel_oldest", "reject_new", "ask_user"]
    """Action beyond that: `cancel_oldest`, `reject_new` or `ask_user`."""
    abandon_after_s: PositiveInt
    """Age at which an inactive flow is abandoned, in seconds."""
    keep_going_budget: PositiveInt
    """Maximum number of flows that one turn can run, one after another."""


class AmbiguitySection(Section):
    """Open questions."""

    escalation_turns: PositiveInt
    """Failed attempts at a question before the assistant offers something else."""
    max_choices: PositiveInt
    """Maximum number of offered choices."""


class Resilience(Section):
    """Retries, timeouts and recovery."""

    max_recovery_attempts: NonNegativeInt
    """Maximum number of fallbacks to another flow in one turn."""
    repair_attempts: NonNegativeInt
    """Maximum repair attempts of an invalid frame."""
    tool_retries: NonNegativeInt
    """Default retries of idempotent tools."""
    tool_timeout_ms: PositiveInt
    """Default timeout of tools."""
    backoff_base_s: NonNegativeFloat
    """Initial delay between retries, in seconds; doubled each time, with jitter."""
    backoff_max_s: NonNegativeFloat
    """Maximum delay between retries, in seconds."""
    skill_overhead_ms: NonNegativeInt
    """Time a skill can take besides its tools' timeouts."""
    skill_rounds: PositiveInt
    """Maximum model calls of a skill."""
    skill_calls: PositiveInt
    """Maximum tool calls of a skill."""
    context_wait_s: PositiveFloat
    """Maximum time that a flow waits for missing context, in seconds."""
    context_in_turn_s: NonNegativeFloat
    """Part of this time that the turn itself waits, in seconds. Then the turn ends, and the flow resumes
    with the findings.
    """


def _check_network(value: str) -> str:
    ipaddress.ip_network(value)
    return value


class Network(Section):
    """Network access of HTTP and MCP tools."""

    private_networks: tuple[Annotated[str, AfterValidator(_check_network)], ...]
    """Private networks that tools can reach, for example ``10.1.0.0/16``."""
    connect_timeout_s: PositiveFloat
    """Timeout of establishing a connection, in seconds."""
    max_output_bytes: PositiveInt
    """Maximum size of a tool's result."""


class Guardrails(Section):
    """Checks of messages and of model-written code."""

    max_tokens: PositiveInt
    """Maximum length of a message."""
    min_characters: PositiveInt
    """Minimum length of a message."""
    reserved_tokens: tuple[str, ...]
    """Text that messages must not contain: role markers of models."""
    max_answer_characters: PositiveInt
    """Maximum length of a reply."""
    allowed_imports: tuple[Module, ...]
    """Modules that model-written Python can import."""


class Plans(Section):
    """Planning."""

    model: Switch
    """Allow a model to plan. `auto`: the model plans goals without declared steps and checks all plans."""
    max_rounds: PositiveInt
    """Maximum number of times that a goal is replanned."""
    max_sub_flows: PositiveInt
    """Maximum number of steps."""
    tree_search: Switch
    """Search among several plans. `auto`: from four steps on, if the model reports trade-offs."""
    tree_candidates: PositiveInt
    """First plans of a search."""
    tree_variants: PositiveInt
    """Variants of each later plan."""
    tree_model_calls: PositiveInt
    """Maximum model calls of a search."""


class Approvals(Section):
    """Approvals of calls."""

    expires_s: PositiveInt
    """Time after which an undecided approval expires, in seconds."""
    by: Literal["user", "operator"]
    """Role that can approve calls, unless a tool names another. Both can always deny."""


class Budgets(Section):
    """Limits on model usage. Costs are in US dollars. Default: unlimited."""

    tokens_per_call: PositiveInt | None
    """Maximum tokens of one model call."""
    cost_per_call: PositiveFloat | None
    """Maximum cost of one model call."""
    tokens_per_turn: PositiveInt | None
    """Maximum tokens of one turn."""
    tokens_per_session: PositiveInt | None
    """Maximum tokens of one session."""
    tokens_per_user_day: PositiveInt | None
    """Maximum tokens of one user on one UTC day. A session without a user counts as a user."""
    tokens_per_tenant_minute: PositiveInt | None
    """Maximum tokens of one tenant in a minute, so that no tenant uses up the provider's rate limit."""
    tokens_per_tenant_day: PositiveInt | None
    """Maximum tokens of one tenant on one UTC day."""
    tokens_per_day: PositiveInt | None
    """Maximum tokens of one UTC day."""
    cost_per_turn: PositiveFloat | None
    """Maximum cost of one turn."""
    cost_per_session: PositiveFloat | None
    """Maximum cost of one session."""
    cost_per_user_day: PositiveFloat | None
    """Maximum cost of one user on one UTC day."""
    cost_per_tenant_day: PositiveFloat | None
    """Maximum cost of one tenant on one UTC day."""
    cost_per_day: PositiveFloat | None
    """Maximum cost of one UTC day."""


class Generation(Section):
    """Replies."""

    naturalize: Switch
    """Allow a model to rephrase replies. `auto`: prose about completed flows. `on`: also other messages and lists."""
    fewest_words: NonNegativeInt
    """Minimum number of words of a reply that is rephrased."""
    suggested_replies: NonNegativeInt
    """Number of next tasks to suggest when nothing is open."""
    tell_degraded: bool
    """Inform users, once, that a configured model isn't responding."""
    page_rows: PositiveInt
    """Rows per page of a table."""


class Command(Section):
    """A Tier 0 pattern: a message that fully matches it goes directly to a flow or an answer (NL-1).

    Named groups are slot values. `development`: for developers only. `after`: only active while the last
    completed task is one of these.
    """

    pattern: Pattern
    flow: str | None = None
    answer: str | None = None
    after: tuple[str, ...] = ()
    development: bool = False


class Credential(Section):
    """Source of users' credentials for HTTP tools, read when a tool that names one is called.

    `url`: for GET, with ``{tenant_id}`` and ``{user_id}``. `headers`: can use environment variables. `field`: the
    member of the JSON response. `missing`: what a user without a credential (404) is told.
    """

    url: Annotated[str, StringConstraints(pattern=r"^https?://[^{}$@]+/")]
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    field: str = "access_token"
    missing: str = ""


class DomainConfig(Section):
    """A domain's configuration, besides ontology and tools. The sections are in `defaults.yaml`."""

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
    credentials: Mapping[str, Credential]
    generation: Generation
    commands: tuple[Command, ...]
    services: Mapping[str, JsonObject]
    """The `config` of each service class, by class name."""
    prompts: Mapping[str, str]
    """Prompts that replace shipped ones, by file name: those in the folder `prompts/`."""


def merge_sections(defaults: JsonObject, overrides: JsonObject) -> JsonObject:
    """Merge a domain's sections over the defaults: mappings by key, anything else as a whole."""
    merged = dict(defaults)
    for key, value in overrides.items():
        known = merged.get(key)
        if is_object(known) and is_object(value):
            merged[key] = merge_sections(known, value)
        elif value is not None or not is_object(known):
            merged[key] = value
    return merged
