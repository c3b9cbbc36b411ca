"""Preferences: memories of a user beyond a session, with their sources (CO-4)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from orchestrator.types import Json, JsonObject, TenantId, UserId

MOST_PREFERENCES: Final = 256
"""Maximum per user; the least recently renewed are evicted first, explicit ones last."""
LONGEST_TEXT: Final = 500
EVERYTHING: Final = "*"
"""The key that records when a user asked to forget everything."""


class PreferenceKind(StrEnum):
    """The kind of a preference."""

    RULE = "rule"
    """A slot value; `key` is ``dact.slot``, or ``*.slot`` for all flows with that slot."""
    NOTE = "note"
    """A sentence about the user."""
    PLAYBOOK = "playbook"
    """The usual course of a task; `key` is ``playbook.dact``."""


class Source(StrEnum):
    """The reason for remembering, in increasing order of weight."""

    HABIT = "habit"
    """Observed often enough."""
    INFERRED = "inferred"
    """Salient or surprising in a conversation."""
    EXPLICIT = "explicit"
    """The user said so."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A memory of a user.

    Args:
        value: a rule's value, or a playbook's content.
        text: the same in words, for the user.
        labels: capability labels of its sources (PX-3).
        origin: its source, for example session, turn or run.
        updated_at: Unix seconds; set by the store.
    """

    key: str
    kind: PreferenceKind
    source: Source
    value: Json = None
    text: str = ""
    labels: tuple[str, ...] = ()
    origin: JsonObject = field(default_factory=JsonObject)
    updated_at: float = 0.0


class PreferenceStore(Protocol):
    """The preference store. Every method raises Unavailable.

    Forgotten preferences are never returned again; the background flow `erase_forgotten` removes their
    content elsewhere.
    """

    async def of_user(self, tenant_id: TenantId, user_id: UserId) -> list[Preference]:
        """Return everything remembered about a user, by key."""
        ...

    async def remember(
        self,
        tenant_id: TenantId,
        user_id: UserId,
        preferences: tuple[Preference, ...],
        *,
        instead_of: tuple[str, ...] = (),
    ) -> None:
        """Add or replace by key; inferences never replace explicit statements.

        `instead_of`: keys to replace.
        """
        ...

    async def forget(self, tenant_id: TenantId, user_id: UserId, keys: tuple[str, ...]) -> int:
        """Forget permanently by key; return how many existed."""
        ...

    async def forget_everything(self, tenant_id: TenantId, user_id: UserId) -> int:
        """Forget everything, and learn nothing from earlier sessions; return how many existed."""
        ...

    async def replace(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        """Replace everything that is remembered; other preferences are forgotten."""
        ...
