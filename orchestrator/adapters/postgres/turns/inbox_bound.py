"""The limit on the number of unfinished turns across all tenants.

The number is counted periodically and estimated in between.
"""

import time
from dataclasses import dataclass

from sqlalchemy import func, select

from orchestrator.adapters.postgres.pool import Database
from orchestrator.turns.turn import require_total_room

_COUNT_EVERY_S = 1.0
# The pause between counts is at least 20 times as long as a count, so counting takes at most 5 % of the time.
_COUNT_SHARE = 20


@dataclass
class InboxBound:
    database: Database
    limit: int
    estimate: int = 0
    next_count_at: float = 0.0

    async def admit(self) -> None:
        now = time.monotonic()
        if now >= self.next_count_at:
            self.next_count_at = now + _COUNT_EVERY_S
            query = select(
                func.parley_unfinished_turns()
            )  # counts all tenants, even for the gateway, which can access only one tenant
            row = await self.database.read_one(query)
            self.estimate = 0 if row is None else int(row[0])
            took = time.monotonic() - now
            self.next_count_at = now + max(_COUNT_EVERY_S, _COUNT_SHARE * took)
        require_total_room(self.estimate, self.limit)

    def count(self) -> None:
        self.estimate += 1
