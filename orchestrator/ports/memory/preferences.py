"""Preferences: what is remembered of a user beyond a session, with where it came from (CO-4)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from orchestrator.types import Json, JsonObject, TenantId, UserId

MOST_PREFERENCES: Final = 256
"""Of one user; those that were not renewed for longest go first, explicit ones last."""
LONGEST_TEXT: Final = 500
EVERYTHING: Final = "*"
"""The key under which it is kept that a user wanted everything forgotten, and when."""


class PreferenceKind(StrEnum):
    """The shape of a preference."""

    RULE = "rule"
    """A value for a slot; `key` is ``dact.slot``, or ``*.slot`` for all flows with a slot of that name."""
    NOTE = "note"
    """A sentence about the user."""
    PLAYBOOK = "playbook"
    """How a task usually goes; `key` is ``playbook.dact``."""


class Source(StrEnum):
    """Why it was remembered; a later entry in this order is worth more."""

    HABIT = "habit"
    """Seen often enough."""
    INFERRED = "inferred"
    """Salient or surprising in a conversation."""
    EXPLICIT = "explicit"
    """The user said so."""


@dataclass(frozen=True, slots=True)
class Preference:
    """One thing known of a user.

    Args:
        value: a rule's value, or what a playbook holds.
        text: the same in words, for the user.
        labels: capability labels of what it was made from (PX-3).
        origin: provenance, for example session, turn or run.
        updated_at: unix seconds; set by the store.
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
    """Every method raises Unavailable.

    What is forgotten is not remembered from this moment on; that it stands nowhere else either is the business of the
    Internal flow `erase_forgotten`.
    """

    async def of_user(self, tenant_id: TenantId, user_id: UserId) -> list[Preference]:
        """Everything remembered of a user, by key."""
        ...

    async def remember(
        self,
        tenant_id: TenantId,
        user_id: UserId,
        preferences: tuple[Preference, ...],
        *,
        instead_of: tuple[str, ...] = (),
    ) -> None:
        """Add or replace by key; what was only inferred never replaces what the user said.

        `instead_of`: keys that these take the place of.
        """
        ...

    async def forget(self, tenant_id: TenantId, user_id: UserId, keys: tuple[str, ...]) -> int:
        """Forget by key, for good; how many there were."""
        ...

    async def forget_everything(self, tenant_id: TenantId, user_id: UserId) -> int:
        """Forget all, and learn nothing from what was before; how many there were."""
        ...

    async def replace(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        """Let these be everything that is remembered; what is not among them is forgotten."""
        ...
