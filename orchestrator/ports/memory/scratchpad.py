"""The scratchpad: a session's shared notes, the only state that Internal flows share (RT-13, RT-14)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from orchestrator.types import Epoch, Json, JsonObject, SessionId, TenantId, new_id

CAPACITY: Final = 64
"""Entries of one scratchpad; the least recently used goes first."""


NO_EPOCH: Final = Epoch(0)


class EntryKind(StrEnum):
    """The kinds of snippets (RT-13)."""

    FINDING = "finding"
    SUMMARY = "summary"
    PROPOSAL = "proposal"
    PLAYBOOK = "playbook"
    RESULT = "result"


@dataclass(frozen=True, slots=True)
class Entry:
    """One snippet.

    Args:
        flow: who wrote it. `origin`: what it was made from, for example a turn or a tool.
        text, data: its content, one or both.
        epoch: of the session when it was made.
        labels: capability labels of what it was made from; they pass on.
        at: unix seconds.
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
        """Its JSON form."""
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
        """The inverse of `to_json`."""
        members: JsonObject = {**body, "kind": EntryKind(body["kind"]), "labels": tuple(body["labels"])}
        return cls(**members)


def new_entry_id() -> str:
    """An identifier for a snippet that nobody has yet."""
    return new_id("note")


class Scratchpad(Protocol):
    """Several may write at once; none loses another's entry. Every method raises Unavailable."""

    async def put(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        entries: tuple[Entry, ...],
        *,
        operation: str | None = None,
    ) -> list[str]:
        """Add or replace entries by id; the ids of those that had to go.

        The same `operation` is carried out once, also when its answer was lost.
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
        """Entries, the least recently used first; all kinds when none is named. Reading is using."""
        ...

    async def remove(self, tenant_id: TenantId, session_id: SessionId, entry_ids: tuple[str, ...]) -> int:
        """Remove entries; how many were there."""
        ...

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None:
        """Remove everything, with the session."""
        ...
