"""Which model answers which prompt, and within which bounds. Values only; loading is elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.domain.configuration import DomainConfig, ModelName
from orchestrator.models.breaker import BreakerPolicy, RetryPolicy
from orchestrator.models.budget import BudgetLimits, Limit, Price

DEFAULT_PROVIDER = "default"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model, and the endpoint that has it, by the name under which the endpoint was configured."""

    model: str
    provider: str = DEFAULT_PROVIDER


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """How calls are made. `default` is None when no model is to be used.

    `stream_timeout_s` bounds a streamed answer, `timeout_s` any other, `patience_s` all attempts at one.
    Names of `max_tokens_per_prompt` and `per_prompt` are prompt identifiers; names of `prices` are models,
    without which a call costs nothing.
    """

    default: ModelChoice | None = None
    per_prompt: Mapping[str, ModelChoice] = field(default_factory=dict[str, ModelChoice])
    fallback: ModelChoice | None = None
    timeout_s: float = 20.0
    stream_timeout_s: float = 60.0
    patience_s: float | None = None
    max_tokens: int = 1024
    max_tokens_per_prompt: Mapping[str, int] = field(default_factory=dict[str, int])
    temperature: float | None = None
    strict_schemas: bool = False
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    budgets: BudgetLimits = field(default_factory=BudgetLimits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)

    def choices(self, prompt_id: str | None) -> tuple[ModelChoice, ...]:
        """Name the models to try for a prompt, or for any (None), in order."""
        own = None if prompt_id is None else self.per_prompt.get(prompt_id)
        first = own or self.default
        candidates = [choice for choice in (first, self.fallback) if choice is not None]
        return tuple(dict.fromkeys(candidates))

    def tokens_for(self, prompt_id: str) -> int:
        return self.max_tokens_per_prompt.get(prompt_id, self.max_tokens)


MICROS = 1_000_000


def read_model_config(
    config: DomainConfig, model: ModelChoice, fallback: ModelChoice | None = None
) -> ModelConfig:
    """Say how a domain's calls are made. `model`, `fallback`: those of the environment."""
    models, budgets = config.models, config.budgets
    return ModelConfig(
        default=_choose(models.default) or model,
        per_prompt={prompt: _choose(name) or model for prompt, name in models.per_prompt.items()},
        fallback=_choose(models.fallback) or fallback,
        timeout_s=models.timeout_s,
        stream_timeout_s=models.stream_timeout_s,
        patience_s=models.patience_s,
        max_tokens=models.max_tokens,
        max_tokens_per_prompt=dict(models.max_tokens_per_prompt),
        temperature=models.temperature,
        strict_schemas=models.strict_schemas,
        prices={name: Price(price.prompt, price.completion) for name, price in models.prices.items()},
        budgets=BudgetLimits(
            call=_limit(budgets.tokens_per_call, budgets.cost_per_call),
            turn=_limit(budgets.tokens_per_turn, budgets.cost_per_turn),
            session=_limit(budgets.tokens_per_session, budgets.cost_per_session),
            day=_limit(budgets.tokens_per_day, budgets.cost_per_day),
        ),
    )


def read_voters(config: DomainConfig) -> tuple[ModelChoice, ...]:
    """Name the models that vote on what a message means (NL-3); none when they do not."""
    voters = config.nlu.voters
    return tuple(ModelChoice(model) for model in voters.models) if voters.enabled else ()


def _choose(name: ModelName | None) -> ModelChoice | None:
    return None if name is None else ModelChoice(name.model, name.provider)


def _limit(tokens: int | None, cost: float | None) -> Limit:
    return Limit(tokens, None if cost is None else round(cost * MICROS))
