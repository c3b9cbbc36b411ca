"""Reads what turns have left behind, for people: frames with their rows, and the journal of calls."""

from __future__ import annotations

from typing import Protocol

from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


class Archive(Protocol):
    """Every method raises NotFound for a session that this tenant does not have."""

    async def frames(self, tenant_id: TenantId, session_id: SessionId) -> list[JsonObject]:
        """The newest frame of each flow, newest first: the frame's members, with `turn_id` and `at`."""
        ...

    async def frame(self, tenant_id: TenantId, session_id: SessionId, frame_id: str) -> JsonObject:
        """One of them. Raises NotFound."""
        ...

    async def journal(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        turn_id: TurnId | None = None,
        limit: int = 200,
    ) -> list[JsonObject]:
        """Model and tool calls of a session's turns, or of one turn, newest first.

        ``{turn_id, key, kind, status, request_hash, at}``; `at` is when it was last written. What was asked
        and answered is left out: it may hold what only the turn may see.
        """
        ...

    async def signals(self, tenant_id: TenantId, turn_id: TurnId) -> list[JsonObject]:
        """List what a finished turn signalled (CO-6), in order; each has `source` and `type`.

        Empty before the turn has ended. Raises NotFound for a turn that this tenant does not have.
        """
        ...
