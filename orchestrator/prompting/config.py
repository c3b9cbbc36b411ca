"""Which model answers which prompt, and within which bounds. Values only; loading is elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.prompting.breaker import BreakerPolicy
from orchestrator.prompting.budget import BudgetLimits, Price
from orchestrator.prompting.retry import RetryPolicy

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
