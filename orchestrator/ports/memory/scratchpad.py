"""The scratchpad: a session's entries, which are the only state that its background flows share (RT-13, RT-14)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final, Protocol

from orchestrator.types import Epoch, Json, JsonObject, SessionId, TenantId, new_id

CAPACITY: Final = 64
"""Maximum number of entries per session. The least recently used entry is evicted first."""


NO_EPOCH: Final = Epoch(0)


class EntryKind(StrEnum):
    FINDING = "finding"
    SUMMARY = "summary"
    PROPOSAL = "proposal"
    PLAYBOOK = "playbook"
    RESULT = "result"


@dataclass(frozen=True, slots=True)
class Entry:
    """A scratchpad entry.

    Args:
        flow: the flow that wrote the entry.
        origin: the source of the content, for example a turn or a tool.
        at: the time of writing, in Unix seconds.
        text, data: the content. At least one of them is set.
        epoch: the session's epoch when the entry was written.
        labels: capability labels of the sources, which propagate to readers.
    """

    flow: str
    origin: str
    kind: EntryKind
    at: float
    text: str | None = None
    data: Json = None
    epoch: Epoch = NO_EPOCH
    labels: tuple[str, ...] = ()
    entry_id: str = ""

    def to_json(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_json(cls, body: JsonObject) -> Entry:
        members: JsonObject = {**body, "kind": EntryKind(body["kind"]), "labels": tuple(body["labels"])}
        return cls(**members)


def new_entry_id() -> str:
    return new_id("note")


class Scratchpad(Protocol):
    """A scratchpad that concurrent writers can update without lost updates. Every method can raise Unavailable."""

    async def put(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        entries: tuple[Entry, ...],
        *,
        operation: str | None = None,
    ) -> list[str]:
        """Add entries, or replace entries with the same ID. Return the IDs of evicted entries.

        `operation`: an ID that prevents the same call from being applied twice, for example when it is
        retried after a lost response.
        """
        ...

    async def read(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        kinds: frozenset[EntryKind] = frozenset(),
        touch: bool = True,
    ) -> list[Entry]:
        """Return entries, least recently used first.

        `kinds`: the kinds to return. Default: all kinds. `touch`: True to count this read as a use.
        """
        ...

    async def remove(self, tenant_id: TenantId, session_id: SessionId, entry_ids: tuple[str, ...]) -> int:
        """Delete entries. Return the number of deleted entries."""
        ...

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None: ...
