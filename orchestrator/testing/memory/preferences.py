"""Preferences in memory, with the rules of the real store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.ports.memory.preferences import MOST_PREFERENCES, Preference, Source
from orchestrator.types import TenantId, UserId

_User = tuple[TenantId, UserId]


class MemoryPreferences:
    """Implements `ports.memory.preferences.PreferenceStore`. `clock`: unix seconds."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._clock = clock
        self._kept: dict[_User, dict[str, Preference]] = {}

    async def of_user(self, tenant_id: TenantId, user_id: UserId) -> list[Preference]:
        kept = self._kept.get((tenant_id, user_id), {})
        return [kept[key] for key in sorted(kept)]

    async def remember(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        kept = self._kept.setdefault((tenant_id, user_id), {})
        for new in preferences:
            known = kept.get(new.key)
            if known is not None and known.source is Source.EXPLICIT and new.source is not Source.EXPLICIT:
                continue
            kept.pop(new.key, None)
            kept[new.key] = replace(new, updated_at=self._clock())
        oldest = sorted(kept, key=lambda key: kept[key].source is Source.EXPLICIT)
        for key in oldest[: max(0, len(kept) - MOST_PREFERENCES)]:
            del kept[key]

    async def forget(self, tenant_id: TenantId, user_id: UserId, keys: tuple[str, ...]) -> int:
        kept = self._kept.get((tenant_id, user_id), {})
        return sum(kept.pop(key, None) is not None for key in keys)

    async def replace(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        self._kept.pop((tenant_id, user_id), None)
        await self.remember(tenant_id, user_id, preferences)
