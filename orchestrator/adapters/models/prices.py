from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from orchestrator.adapters.models.providers import PROVIDERS, Endpoint
from orchestrator.ports.language_model import Usage


def list_price(endpoint: Endpoint, url: str, model: str, usage: Usage) -> float:
    """Return the cost in US dollars according to `genai-prices`, or 0 if the price is unknown.

    Compatible endpoints' prices are looked up by URL, so that a local server is free even if its model has
    a price.
    """
    counts = PricedUsage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=min(usage.cached_tokens, usage.prompt_tokens),
    )
    provider = endpoint.provider.partition("-")[0]
    try:
        if provider in PROVIDERS and not endpoint.is_compatible:
            return float(calc_price(counts, model, provider_id=provider).total_price)
        return float(calc_price(counts, model, provider_api_url=url).total_price)
    except (LookupError, ValueError):  # no price is known for this model or these counts
        return 0.0
