"""Reads a domain's configuration as the configuration of model calls. Pure."""

from orchestrator.domain.configuration import DomainConfig, ModelName
from orchestrator.prompting.budget import BudgetLimits, Limit, Price
from orchestrator.prompting.config import ModelChoice, ModelConfig

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
