"""The scratchpad: entries of a session, the only state shared by background flows (RT-13, RT-14)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from orchestrator.types import Epoch, Json, JsonObject, SessionId, TenantId, new_id

CAPACITY: Final = 64
"""Maximum entries; the least recently used is evicted first."""


NO_EPOCH: Final = Epoch(0)


class EntryKind(StrEnum):
    """The kinds of entries (RT-13)."""

    FINDING = "finding"
    SUMMARY = "summary"
    PROPOSAL = "proposal"
    PLAYBOOK = "playbook"
    RESULT = "result"


@dataclass(frozen=True, slots=True)
class Entry:
    """A scratchpad entry.

    Args:
        flow: its author.
        origin: its source, for example a turn or a tool.
        text, data: its content, one or both.
        epoch: the session's epoch when it was written.
        labels: capability labels of its sources, which propagate.
        at: Unix seconds.
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
        return {
            "flow": self.flow,
            "origin": self.origin,
            "kind": self.kind,
            "at": self.at,
            "text": self.text,
            "data": self.data,
            "epoch": self.epoch,
            "labels": self.labels,
            "entry_id": self.entry_id,
        }

    @classmethod
    def from_json(cls, body: JsonObject) -> Entry:
        """Return the object that `to_json` wrote."""
        members: JsonObject = {**body, "kind": EntryKind(body["kind"]), "labels": tuple(body["labels"])}
        return cls(**members)


def new_entry_id() -> str:
    """Return a new entry ID."""
    return new_id("note")


class Scratchpad(Protocol):
    """A concurrent scratchpad without lost updates. Every method raises Unavailable."""

    async def put(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        entries: tuple[Entry, ...],
        *,
        operation: str | None = None,
    ) -> list[str]:
        """Add or replace entries by ID; return the IDs of evicted ones.

        The same `operation` is applied once, even if its response was lost.
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
        """Return entries, least recently used first, of all kinds by default. Reading counts as use."""
        ...

    async def remove(self, tenant_id: TenantId, session_id: SessionId, entry_ids: tuple[str, ...]) -> int:
        """Delete entries; return how many existed."""
        ...

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None:
        """Delete everything, with the session."""
        ...
