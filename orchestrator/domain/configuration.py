"""A domain's configuration: sections merged over shared defaults, validated and frozen (CO-5).

The defaults are in ``defaults.yaml``. Callers read this file and the domain's file, and pass both as plain data.
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
    """Tone of rephrased replies. Only prompts use this setting."""
    greeting: str
    """First message of a conversation."""


class Language(Section):
    """Languages, as ISO 639-1 codes."""

    default: str
    """Language of prompts, templates and examples."""
    supported: tuple[str, ...]
    """Languages that users can write in. Messages in other languages are rejected."""


class ModelName(Section):
    """A model and the name of its endpoint."""

    model: str
    provider: str = "default"


ModelReference = Annotated[
    ModelName | None, BeforeValidator(lambda value: {"model": value} if isinstance(value, str) else value)
]


ReasoningEffort = Literal["none", "minimal", "low", "medium", "high"]


class ModelPrice(Section):
    """Prices per million prompt tokens and per million completion tokens, in US dollars."""

    prompt: NonNegativeFloat
    completion: NonNegativeFloat


class Models(Section):
    """Language models. Per-prompt settings are keyed by prompt ID, for example ``nlu_think``."""

    default: ModelReference
    """Model name, or ``{model, provider}``. Default: `PARLEY_MODEL`."""
    fallback: ModelReference
    """Model to use when the default model fails. Default: `PARLEY_FALLBACK_MODEL`."""
    per_prompt: Mapping[str, ModelReference]
    """Models for individual prompts."""
    timeout_s: PositiveFloat
    """Timeout of one model request, in seconds."""
    stream_timeout_s: PositiveFloat
    """Timeout of one streamed model request, in seconds."""
    patience_s: PositiveFloat
    """Total timeout of one model call with retries, repairs of invalid answers and the fallback model, in seconds."""
    max_tokens: PositiveInt
    """Maximum length of a model's answer, in tokens."""
    max_tokens_per_prompt: Mapping[str, PositiveInt]
    """Maximum length of a model's answer to individual prompts, in tokens."""
    effort: ReasoningEffort | None
    """Reasoning effort: `none`, `minimal`, `low`, `medium` or `high`.

    Default: the prompt's effort, or the model's.
    """
    effort_per_prompt: Mapping[str, ReasoningEffort]
    """Reasoning effort for individual prompts."""
    temperature: float | None
    """Sampling temperature. Default: the model's temperature."""
    prices: Mapping[str, ModelPrice]
    """Prices by model that replace list prices: ``{prompt, completion}``, in US dollars per million tokens."""


class Understanding(Section):
    """Interpretation of messages."""

    mode: Literal["system1", "system2", "auto"]
    """`system1`: only the local classifier. `system2`, `auto`: the language model, or the local classifier while
    the model does not respond.
    """
    slot_fill: Switch
    """Allow a model to search earlier turns for missing values. `auto`: only when a task starts."""


class Thresholds(Section):
    """Minimum scores, from 0 to 1, and the length limit for answers that are not streamed."""

    confident: Share
    """Minimum score at which the local classifier's interpretation of a mid-turn message takes effect."""
    likely: Share
    """Minimum score of a flow. If no flow reaches it, the assistant asks what the user means."""
    stream_threshold_tokens: PositiveInt
    """Maximum length of answers that are not streamed, in tokens."""


class Session(Section):
    """Defaults for sessions and turns."""

    deadline_s: PositiveFloat
    """Maximum duration of one attempt at a turn, in seconds.

    `PARLEY_TURN_DEADLINE_S` limits all attempts together.
    """
    if_busy: Literal["enqueue", "reject", "interrupt", "rollback", "understand"]
    """Default rule for a turn that arrives during another turn: `enqueue`, `reject`, `interrupt`, `rollback`
    or `understand`.
    """
    timezone: TimeZone
    """Default time zone of users, an IANA name."""
    locale: LocaleTag | None
    """Default locale of users, for numbers, dates and amounts. `null`: English formats."""


class Memory(Section):
    """Limits of the session state."""

    max_history_messages: PositiveInt
    """Maximum number of messages in the state."""
    max_trace_entries: PositiveInt
    """Maximum number of trace entries in the state."""
    completed_flows: PositiveInt
    """Maximum number of completed flows in the state. Older flows are archived."""
    snapshot_every_turns: PositiveInt
    """Number of turns between full copies of the state in the history."""


class FlowManagement(Section):
    """Limits of the flow stack."""

    max_stack_depth: PositiveInt | None
    """Maximum number of open tasks. A plan counts as one task. Default: unlimited."""
    on_limit_reached: Literal["cancel_oldest", "reject_new", "ask_user"]
    """Action when the limit is reached: `cancel_oldest`, `reject_new` or `ask_user`."""
    abandon_after_s: PositiveInt
    """Time after which an inactive flow is abandoned, in seconds."""
    keep_going_budget: PositiveInt
    """Maximum number of flows to run per turn, one after another."""


class AmbiguitySection(Section):
    """Open questions and unclear messages."""

    escalation_turns: PositiveInt
    """Number of failed attempts at a question before the assistant offers fallback options."""
    max_choices: PositiveInt
    """Maximum number of tasks to offer when a message was not understood."""


class Resilience(Section):
    """Retries, timeouts and recovery."""

    max_recovery_attempts: NonNegativeInt
    """Maximum number of fallbacks to another flow per turn."""
    repair_attempts: NonNegativeInt
    """Maximum number of attempts per flow to repair a query or an invalid frame."""
    tool_retries: NonNegativeInt
    """Default maximum number of retries per call of an idempotent tool."""
    tool_timeout_ms: PositiveInt
    """Default timeout per tool call, in milliseconds."""
    backoff_base_s: NonNegativeFloat
    """Initial delay between retries, in seconds. Each retry doubles it, with jitter."""
    backoff_max_s: NonNegativeFloat
    """Maximum delay between retries, in seconds."""
    skill_overhead_ms: NonNegativeInt
    """Time that a skill can take in addition to its tools' timeouts, in milliseconds."""
    skill_rounds: PositiveInt
    """Maximum number of model calls per skill run."""
    skill_calls: PositiveInt
    """Maximum number of tool calls per skill run."""
    context_wait_s: PositiveFloat
    """Maximum time that a flow waits for missing context, in seconds."""
    context_in_turn_s: NonNegativeFloat
    """Part of `context_wait_s` that the turn itself waits, in seconds.

    Then the turn ends, and the flow resumes later.
    """


def _check_network(value: str) -> str:
    ipaddress.ip_network(value)
    return value


class Network(Section):
    """Network access of HTTP and MCP tools."""

    private_networks: tuple[Annotated[str, AfterValidator(_check_network)], ...]
    """Private networks that tools can reach, for example ``[10.1.0.0/16]``."""
    connect_timeout_s: PositiveFloat
    """Timeout for establishing a connection, in seconds."""
    max_output_bytes: PositiveInt
    """Maximum size of a tool's result, in bytes."""


class Guardrails(Section):
    """Checks of messages and of model-written code."""

    max_tokens: PositiveInt
    """Maximum length of a message, in tokens."""
    min_characters: PositiveInt
    """Minimum length of a message, in characters."""
    reserved_tokens: tuple[str, ...]
    """Strings that messages must not contain, such as models' role markers."""
    max_answer_characters: PositiveInt
    """Maximum length of a reply, in characters."""
    allowed_imports: tuple[Module, ...]
    """Modules that model-written Python can import."""


class Plans(Section):
    """Planning."""

    model: Switch
    """Allow a model to plan and to check plans. `auto`: it plans only what the declared steps don't cover."""
    max_rounds: PositiveInt
    """Maximum number of times that steps are planned per goal."""
    max_sub_flows: PositiveInt
    """Maximum number of steps in a plan."""
    tree_search: Switch
    """Search among several plans. `auto`: only for four or more steps, if the model reports alternatives."""
    tree_candidates: PositiveInt
    """Maximum number of plans at the start of a search."""
    tree_variants: PositiveInt
    """Maximum number of variants of each plan in a search."""
    tree_model_calls: PositiveInt
    """Maximum number of model calls per search."""


class Approvals(Section):
    """Approvals of calls."""

    expires_s: PositiveInt
    """Time after which an undecided approval expires, in seconds."""
    by: Literal["user", "operator"]
    """Role that can approve calls, unless a tool names another role. Both roles can always deny calls."""


class Budgets(Section):
    """Limits on model usage. Costs are in US dollars. Default: unlimited."""

    tokens_per_call: PositiveInt | None
    """Maximum number of tokens per model call."""
    cost_per_call: PositiveFloat | None
    """Maximum cost per model call."""
    tokens_per_turn: PositiveInt | None
    """Maximum number of tokens per turn."""
    tokens_per_session: PositiveInt | None
    """Maximum number of tokens per session."""
    tokens_per_user_day: PositiveInt | None
    """Maximum number of a user's tokens per UTC day. A session without a user counts as a separate user."""
    tokens_per_tenant_minute: PositiveInt | None
    """Maximum number of a tenant's tokens per minute, so that no tenant exhausts the provider's rate limit."""
    tokens_per_tenant_day: PositiveInt | None
    """Maximum number of a tenant's tokens per UTC day."""
    tokens_per_day: PositiveInt | None
    """Maximum number of all tenants' tokens per UTC day."""
    cost_per_turn: PositiveFloat | None
    """Maximum cost per turn."""
    cost_per_session: PositiveFloat | None
    """Maximum cost per session."""
    cost_per_user_day: PositiveFloat | None
    """Maximum cost of a user's model calls per UTC day."""
    cost_per_tenant_day: PositiveFloat | None
    """Maximum cost of a tenant's model calls per UTC day."""
    cost_per_day: PositiveFloat | None
    """Maximum cost of all tenants' model calls per UTC day."""


class Generation(Section):
    """Generation of replies."""

    naturalize: Switch
    """Allow a model to rephrase replies.

    `auto`: prose about completed flows. `on`: also other messages and lists.
    """
    fewest_words: NonNegativeInt
    """Minimum length of replies to rephrase, in words."""
    suggested_replies: NonNegativeInt
    """Maximum number of suggested next tasks, or of suggested plan steps to skip, per answer."""
    tell_degraded: bool
    """Inform users, once per conversation, that a configured model isn't responding."""
    page_rows: PositiveInt
    """Number of table rows per page."""


class Command(Section):
    """A pattern for messages that go directly to a flow or an answer (NL-1).

    Attributes:
        pattern: a regular expression that must match the whole message. Its named groups are slot values.
        after: flows, one of which must be the last completed task. Default: the command is always available.
        development: True if the command is only for developers.
    """

    pattern: Pattern
    flow: str | None = None
    answer: str | None = None
    after: tuple[str, ...] = ()
    development: bool = False


class Credential(Section):
    """A source of users' credentials for HTTP tools, read when a tool that needs the credential is called.

    Attributes:
        url: the URL of a GET request, with ``{tenant_id}`` and ``{user_id}``.
        headers: headers of the request, which can use environment variables.
        field: the key of the credential in the JSON response.
        missing: the message for a user without a credential (404).
    """

    url: Annotated[str, StringConstraints(pattern=r"^https?://[^{}$@]+/")]
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    field: str = "access_token"
    missing: str = ""


class DomainConfig(Section):
    """A domain's configuration, without its ontology and tools."""

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
    """Configuration of each service, by class name."""
    prompts: Mapping[str, str]
    """Texts of the files in the `prompts/` folder, by file name. They replace built-in prompts."""

    @property
    def command_flows(self) -> frozenset[str]:
        return frozenset(command.flow for command in self.commands if command.flow is not None)


def merge_sections(defaults: JsonObject, overrides: JsonObject) -> JsonObject:
    """Merge a domain's sections over the defaults. Mappings merge by key; other values are replaced."""
    merged = dict(defaults)
    for key, value in overrides.items():
        known = merged.get(key)
        if is_object(known) and is_object(value):
            merged[key] = merge_sections(known, value)
        elif value is not None or not is_object(known):
            merged[key] = value
    return merged
