"""Scratchpads in Redis, changed atomically by Lua scripts.

Writes go to the PostgreSQL archive first. If Redis loses a scratchpad, the next use restores it from the
archive (RT-14). Concurrent writes to several scratchpads share one SQL statement.
"""

from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Any

import orjson
from redis.asyncio import Redis

from orchestrator.adapters.postgres.memory.scratchpad import OwnedEntry, PostgresScratchpadArchive
from orchestrator.adapters.redis.client import Gathered, read_script, translated
from orchestrator.errors import NotFound, Unavailable
from orchestrator.ports.memory.scratchpad import CAPACITY, Entry, EntryKind, new_entry_id
from orchestrator.types import SessionId, TenantId

PREFIX = "parley:scratchpad:"
KEEP_S = 7 * 24 * 3600

_Name = tuple[TenantId, SessionId, str]
"""An entry's tenant, session and ID."""


class RedisScratchpad:
    """A `Scratchpad` in Redis, backed by an archive in PostgreSQL.

    Args:
        keep_s: how long Redis keeps a scratchpad after its last write, in seconds.
    """

    def __init__(self, redis: Redis, archive: PostgresScratchpadArchive, *, keep_s: int = KEEP_S) -> None:
        self._redis: Any = redis
        self._archive = archive
        self._keep_s = keep_s
        self._saves = Gathered[tuple[OwnedEntry, ...], None](self._save_all)
        self._removals = Gathered[tuple[_Name, ...], None](self._remove_all)
        self._put = redis.register_script(read_script("scratchpad_put"))
        self._read = redis.register_script(read_script("scratchpad_read"))
        self._remove = redis.register_script(read_script("scratchpad_remove"))

    async def put(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        entries: tuple[Entry, ...],
        *,
        operation: str | None = None,
    ) -> list[str]:
        named = tuple(_named(entry, operation, place) for place, entry in enumerate(entries))
        await self._save(tuple(OwnedEntry(tenant_id, session_id, entry) for entry in named))
        gone = await self._whole(
            tenant_id, session_id, lambda: self._write(tenant_id, session_id, named, operation or "")
        )
        evicted = [entry_id.decode() for entry_id in gone]
        if evicted:
            await self._removals.add(tuple((tenant_id, session_id, entry_id) for entry_id in evicted))
        return evicted

    async def read(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        kinds: frozenset[EntryKind] = frozenset(),
        touch: bool = True,
    ) -> list[Entry]:
        entries, used, _, filled = _keys(tenant_id, session_id)
        arguments = ["1" if touch else "0", *sorted(kinds)]
        found = await self._whole(
            tenant_id, session_id, lambda: _answer(self._read(keys=[entries, used, filled], args=arguments))
        )
        return [Entry.from_json(orjson.loads(body)) for body in found]

    async def remove(self, tenant_id: TenantId, session_id: SessionId, entry_ids: tuple[str, ...]) -> int:
        if not entry_ids:
            return 0
        await self._removals.add(tuple((tenant_id, session_id, entry_id) for entry_id in entry_ids))
        entries, used, _, _ = _keys(tenant_id, session_id)
        return await _answer(self._remove(keys=[entries, used], args=list(entry_ids)))

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None:
        await self._archive.forget(tenant_id, session_id)
        await _answer(self._redis.delete(*_keys(tenant_id, session_id)))

    async def _save(self, owned: tuple[OwnedEntry, ...]) -> None:
        try:
            await self._saves.add(owned)
        except (
            NotFound
        ):  # the missing session may belong to another caller's batch, so save this batch separately
            await self._archive.save(owned)

    async def _save_all(self, several: list[tuple[OwnedEntry, ...]]) -> None:
        await self._archive.save(chain.from_iterable(several))

    async def _remove_all(self, several: list[tuple[_Name, ...]]) -> None:
        await self._archive.remove([*chain.from_iterable(several)])

    async def _whole(
        self, tenant_id: TenantId, session_id: SessionId, act: Callable[[], Awaitable[Any]]
    ) -> list[bytes]:
        """Run `act`, which returns None if Redis has lost the scratchpad.

        In that case, restore the scratchpad from the archive and retry. Raises Unavailable if Redis loses the
        scratchpad again.
        """
        answer = await act()
        if answer is None:
            kept = tuple(await self._archive.load(tenant_id, session_id))
            await self._write(tenant_id, session_id, kept, "", filling=True)
            answer = await act()
        if answer is None:
            raise Unavailable("The scratchpad was lost again while being restored; try again.")
        return answer

    async def _write(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        entries: tuple[Entry, ...],
        operation: str,
        *,
        filling: bool = False,
    ) -> Any:
        pairs = [part for entry in entries for part in (entry.entry_id, orjson.dumps(entry.to_json()))]
        arguments = [CAPACITY, self._keep_s, operation, "1" if filling else "0", *pairs]
        return await _answer(self._put(keys=list(_keys(tenant_id, session_id)), args=arguments))


def _keys(tenant_id: TenantId, session_id: SessionId) -> tuple[str, str, str, str]:
    """Return the keys for a scratchpad's entries, use order, operations and use counter.

    The braces put all keys into one hash slot.
    """
    family = f"{PREFIX}{{{tenant_id}/{session_id}}}:"
    return f"{family}entries", f"{family}used", f"{family}operations", f"{family}filled"


def _named(entry: Entry, operation: str | None, place: int) -> Entry:
    """Return the entry with an ID, assigning one if necessary. A repeated operation assigns the same IDs."""
    if entry.entry_id:
        return entry
    name = new_entry_id() if operation is None else f"note_{operation}_{place}"
    return Entry.from_json({**entry.to_json(), "entry_id": name})


async def _answer(answer: Awaitable[Any]) -> Any:
    with translated():
        return await answer
