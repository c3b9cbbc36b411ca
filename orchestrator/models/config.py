from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.domain.configuration import DomainConfig, ModelName
from orchestrator.models.budget import MICROS, BudgetLimits, Limit, Price
from orchestrator.models.retries import RetryPolicy
from orchestrator.models.templates import Prompt
from orchestrator.ports.language_model import Effort

DEFAULT_PROVIDER = "default"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model and the configured name of its endpoint."""

    model: str
    provider: str = DEFAULT_PROVIDER


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in seconds.

    `request_s`: for one attempt. `stream_s`: for one streamed attempt. `answer_s`: for all attempts together,
    or None if only the turn's deadline limits them.
    """

    request_s: float = 20.0
    stream_s: float = 60.0
    answer_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The configuration of model calls.

    Attributes:
        default: the model for prompts without an entry in `per_prompt`, or None for no model.
        per_prompt, max_tokens_per_prompt, effort_per_prompt: models, answer limits and reasoning efforts by
            prompt ID.
        prices: prices by model. Default: the provider's list price.
    """

    default: ModelChoice | None = None
    per_prompt: Mapping[str, ModelChoice] = field(default_factory=dict[str, ModelChoice])
    fallback: ModelChoice | None = None
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_tokens: int = 1024
    max_tokens_per_prompt: Mapping[str, int] = field(default_factory=dict[str, int])
    effort: Effort | None = None
    effort_per_prompt: Mapping[str, Effort] = field(default_factory=dict[str, Effort])
    temperature: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    budgets: BudgetLimits = field(default_factory=BudgetLimits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)

    def choices(self, prompt_id: str | None) -> tuple[ModelChoice, ...]:
        """Return the models to try for a prompt, in order.

        `prompt_id`: None for the default model.
        """
        own = None if prompt_id is None else self.per_prompt.get(prompt_id)
        first = own or self.default
        return tuple(dict.fromkeys(choice for choice in (first, self.fallback) if choice is not None))

    @property
    def every_choice(self) -> set[ModelChoice]:
        named = (self.default, self.fallback, *self.per_prompt.values())
        return {choice for choice in named if choice is not None}

    def tokens_for(self, prompt: Prompt) -> int:
        """Return the answer limit in tokens.

        The domain's limit for this prompt overrides the prompt's own limit, which overrides the domain's
        general limit.
        """
        return self.max_tokens_per_prompt.get(prompt.id) or prompt.max_tokens or self.max_tokens

    def effort_for(self, prompt: Prompt) -> Effort | None:
        """Return the reasoning effort, if any, with the same precedence as in `tokens_for`."""
        return self.effort_per_prompt.get(prompt.id) or prompt.effort or self.effort


def read_model_config(
    config: DomainConfig,
    model: ModelChoice,
    fallback: ModelChoice | None = None,
    resolve: Callable[[ModelChoice], ModelChoice] = lambda choice: choice,
) -> ModelConfig:
    """Return a domain's model configuration.

    `model` and `fallback`: defaults from the environment. `resolve`: finds the endpoint of a choice such as
    ``provider:name`` in the domain.
    """
    models, budgets = config.models, config.budgets

    def choose(name: ModelName | None) -> ModelChoice:
        return model if name is None else resolve(ModelChoice(name.model, name.provider))

    return ModelConfig(
        default=choose(models.default),
        per_prompt={prompt: choose(name) for prompt, name in models.per_prompt.items()},
        fallback=choose(models.fallback) if models.fallback else fallback,
        timeouts=Timeouts(models.timeout_s, models.stream_timeout_s, models.patience_s),
        max_tokens=models.max_tokens,
        max_tokens_per_prompt=dict(models.max_tokens_per_prompt),
        effort=None if models.effort is None else Effort(models.effort),
        effort_per_prompt={name: Effort(effort) for name, effort in models.effort_per_prompt.items()},
        temperature=models.temperature,
        prices={name: Price(price.prompt, price.completion) for name, price in models.prices.items()},
        budgets=BudgetLimits(
            call=_limit(budgets.tokens_per_call, budgets.cost_per_call),
            turn=_limit(budgets.tokens_per_turn, budgets.cost_per_turn),
            session=_limit(budgets.tokens_per_session, budgets.cost_per_session),
            user_day=_limit(budgets.tokens_per_user_day, budgets.cost_per_user_day),
            tenant_minute=_limit(budgets.tokens_per_tenant_minute, None),
            tenant_day=_limit(budgets.tokens_per_tenant_day, budgets.cost_per_tenant_day),
            day=_limit(budgets.tokens_per_day, budgets.cost_per_day),
        ),
    )


def _limit(tokens: int | None, cost: float | None) -> Limit:
    return Limit(tokens, None if cost is None else round(cost * MICROS))
