"""Where feedback on turns is kept."""

from __future__ import annotations

from typing import Protocol

from orchestrator.turns.feedback import Feedback, FeedbackRecord
from orchestrator.types import SessionId, TenantId, TurnId


class FeedbackStore(Protocol):
    """Keeps what people think of turns. Every method raises Unavailable."""

    async def give(self, tenant_id: TenantId, turn_id: TurnId, feedback: Feedback) -> FeedbackRecord:
        """Keep what somebody thinks of a turn; the same author's later word replaces the earlier one.

        Raises NotFound.
        """
        ...

    async def list(
        self, tenant_id: TenantId, *, session_id: SessionId | None = None, limit: int = 100
    ) -> list[FeedbackRecord]:
        """Newest first; of all sessions when none is named."""
        ...
