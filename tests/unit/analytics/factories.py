"""Services of the analytics domain over in-memory records, and calls of their tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from domains.analytics.services import Charts, Exports, Schedules, Tables
from orchestrator.domain.services import Records, ServiceContext, ToolCall
from orchestrator.types import DEFAULT_TENANT, SessionId, UserId
from parley.testing.memory import MemoryRecords

_keys = count(1)


def a_call(key: str | None = None, *, session: str = "session_1", user: str | None = None) -> ToolCall:
    """Return a call with a new key, unless one is given."""
    user_id = UserId(user) if user else None
    return ToolCall(key or f"key_{next(_keys)}", SessionId(session), user_id, DEFAULT_TENANT, 0.0)


@dataclass
class Office:
    """All services over the same records."""

    records: Records = field(default_factory=MemoryRecords)

    def __post_init__(self) -> None:
        context = ServiceContext(self.records)
        self.tables, self.charts = Tables(context), Charts(context)
        self.exports, self.schedules = Exports(context), Schedules(context)
