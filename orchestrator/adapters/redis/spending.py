"""Counters of tokens and cost that all workers share, as Redis hashes that expire."""

from redis.asyncio import Redis

from orchestrator.adapters.redis.client import translated
from orchestrator.ports.spending import Spent

PREFIX = "parley:spent:"


class RedisSpending:
    """Implements `ports.spending.SpendingStore`.

    An addition whose reply is lost may have been made: counters may show too much, never too little.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def add(self, key: str, amount: Spent, *, keep_s: int) -> Spent:
        """See `SpendingStore.add`."""
        name = PREFIX + key
        with translated("Redis does not count what models cost; try again later."):
            async with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.hincrby(name, "tokens", amount.tokens)
                pipeline.hincrby(name, "cost_micros", amount.cost_micros)
                pipeline.expire(name, keep_s)
                tokens, cost_micros, _ = await pipeline.execute()
        return Spent(tokens, cost_micros)
