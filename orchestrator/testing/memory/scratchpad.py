"""A scratchpad in memory, with the rules of the real one."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import replace

from orchestrator.ports.memory.scratchpad import CAPACITY, Entry, EntryKind, new_entry_id
from orchestrator.types import SessionId, TenantId

_Key = tuple[TenantId, SessionId]


class MemoryScratchpad:
    """Implements `ports.memory.scratchpad.Scratchpad`."""

    def __init__(self) -> None:
        self._entries: defaultdict[_Key, OrderedDict[str, Entry]] = defaultdict(OrderedDict)
        self._operations: defaultdict[_Key, set[str]] = defaultdict(set)

    async def put(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        entries: tuple[Entry, ...],
        *,
        operation: str | None = None,
    ) -> list[str]:
        key = (tenant_id, session_id)
        if operation is not None:
            if operation in self._operations[key]:
                return []
            self._operations[key].add(operation)
        kept = self._entries[key]
        for entry in entries:
            named = entry if entry.entry_id else replace(entry, entry_id=new_entry_id())
            kept[named.entry_id] = named
            kept.move_to_end(named.entry_id)
        return [kept.popitem(last=False)[0] for _ in range(len(kept) - CAPACITY)]

    async def read(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        kinds: frozenset[EntryKind] = frozenset(),
        touch: bool = True,
    ) -> list[Entry]:
        kept = self._entries[tenant_id, session_id]
        found = [entry for entry in kept.values() if not kinds or entry.kind in kinds]
        for entry in found if touch else ():
            kept.move_to_end(entry.entry_id)
        return found

    async def remove(self, tenant_id: TenantId, session_id: SessionId, entry_ids: tuple[str, ...]) -> int:
        kept = self._entries[tenant_id, session_id]
        return sum(kept.pop(entry_id, None) is not None for entry_id in entry_ids)

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None:
        self._entries.pop((tenant_id, session_id), None)
        self._operations.pop((tenant_id, session_id), None)
