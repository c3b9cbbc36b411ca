"""Preferences: the facts that Parley remembers about a user across sessions, with their sources (CO-4)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from orchestrator.types import Json, JsonObject, TenantId, UserId

MOST_PREFERENCES: Final = 256
"""Maximum number of preferences per user.

The least recently updated preference is evicted first. Explicit preferences are evicted after all others.
"""
LONGEST_TEXT: Final = 500
EVERYTHING: Final = "*"
"""The key of the entry that records when a user asked to forget all preferences."""


class PreferenceKind(StrEnum):
    RULE = "rule"
    """A default slot value. Its key is ``dact.slot``, or ``*.slot`` for all flows with that slot."""
    NOTE = "note"
    """A sentence about the user."""
    PLAYBOOK = "playbook"
    """The usual course of a task. Its key is ``playbook.dact``."""


class Source(StrEnum):
    """The reason why a preference is remembered, from the weakest to the strongest."""

    HABIT = "habit"
    """The user repeated the same behavior often enough."""
    INFERRED = "inferred"
    """The fact was salient or surprising in a conversation."""
    EXPLICIT = "explicit"
    """The user stated the fact."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A remembered fact about a user.

    Args:
        value: a rule's value, or a playbook's content.
        text: a description for the user.
        labels: capability labels of the sources (PX-3).
        origin: the source, for example a session, turn or run.
        updated_at: the time of the last change, in Unix seconds; set by the store.
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
    """The preference store. Every method can raise Unavailable.

    Forgotten preferences are not returned. The background flow `erase_forgotten` removes their content from
    other stores.
    """

    async def of_user(self, tenant_id: TenantId, user_id: UserId) -> list[Preference]:
        """Return all of a user's preferences, ordered by key."""
        ...

    async def remember(
        self,
        tenant_id: TenantId,
        user_id: UserId,
        preferences: tuple[Preference, ...],
        *,
        instead_of: tuple[str, ...] = (),
    ) -> None:
        """Add preferences, or replace preferences with the same key.

        Only explicit preferences can replace explicit preferences. `instead_of`: keys of other preferences to
        delete in the same transaction.
        """
        ...

    async def forget(self, tenant_id: TenantId, user_id: UserId, keys: tuple[str, ...]) -> int:
        """Forget the preferences with these keys permanently. Return how many existed."""
        ...

    async def forget_everything(self, tenant_id: TenantId, user_id: UserId) -> int:
        """Forget all preferences. Return how many existed.

        Afterward, no preferences are inferred from earlier conversations.
        """
        ...

    async def replace(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        """Store these preferences and forget all others."""
        ...
