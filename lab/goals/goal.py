"""Data types shared by simulated users, worlds and the judge, such as wishes, moves and side effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, TypeAlias

from lab.goals.grammar import Grammar
from parley import Records

Values: TypeAlias = dict[str, Any]
Store: TypeAlias = dict[str, dict[str, Any]]
"""A domain's stored records, such as bookings or notes, by ID."""


@dataclass(eq=False)
class Wish:
    """A user's task or question.

    `twists`: remaining deviations from the shortest path, as pairs of stage and deviation. `about`: the earlier
    wish that this wish concerns. `wanted`: False after the user abandons the wish. `told`: True after the assistant
    reports success.
    """

    kind: str
    values: Values
    twists: list[tuple[str, str]] = field(default_factory=list)
    about: Wish | None = None
    wanted: bool = True
    told: bool = False
    alternatives: Values = field(default_factory=dict)
    """Other values that the domain can provide, by slot."""
    choice: str = ""
    """The kind of reference to the row that the user chooses, such as its airline or position."""
    outcomes: dict[str, tuple[str, Values]] = field(default_factory=dict)
    """Reported ID and agreed values of each outcome, by part of the wish."""
    former: dict[str, Values] = field(default_factory=dict)
    """Agreed values of reported outcomes that the user no longer wants, by ID."""
    asked_anew: bool = False
    """True if the user asked again after a change of mind, and must undo the first outcome."""

    @property
    def is_open(self) -> bool:
        return self.wanted and not self.told

    def take_twist(self, stage: str) -> str | None:
        """Remove and return the first twist of a stage, or return None if the stage has none."""
        for twist in self.twists:
            if twist[0] == stage:
                self.twists.remove(twist)
                return twist[1]
        return None


@dataclass(frozen=True)
class Deed:
    """A side effect that a wish needs. `part`: part of the wish that needs it, such as a trip's return flight.

    `slots`: the wish's slot for each of the `values` whose name differs from the slot's.
    """

    kind: str
    values: Values
    part: str = ""
    slots: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Agreement:
    """A user's confirmation. `deed`: the confirmed side effect, or None. `undo`: IDs of the outcomes to undo."""

    wish: Wish
    deed: Deed | None = None
    undo: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Move:
    """A user's message or click.

    `meaning`: the correct interpretation, as a model returns it, or None for clicks. `agreement`: what the user
    confirms, or None. `cooperates`: True if the move should advance a wish.
    """

    purpose: str
    text: str = ""
    action: Mapping[str, Any] | None = None
    meaning: Mapping[str, Any] | None = None
    agreement: Agreement | None = None
    cooperates: bool = True


def meant(kind: str, *dacts: str) -> Values:
    """Return a correct interpretation with this message kind and these flows, in a model's format, without slots."""
    return {
        "kind": kind,
        "intent": None,
        "flows": [{"dact": dact, "score": 0.95} for dact in dacts],
        "slots": {},
        "target": None,
        "digression": None,
    }


@dataclass(frozen=True)
class Seen:
    """The text and the buttons of an answer, as a user reads them.

    `kind`: one of offer, question, change, redo, rows and nothing. `what`: the offered kind of deed, or the
    requested slot. `back_to`: the kind of wish that the assistant returns to.
    """

    kind: str
    what: str = ""
    values: Values = field(default_factory=dict)
    rows: Sequence[Values] = ()
    back_to: str = ""
    text: str = ""
    actions: Sequence[Mapping[str, Any]] = ()

    def button(self, name: str) -> Mapping[str, Any] | None:
        return next((action for action in self.actions if action["name"] == name), None)


@dataclass(frozen=True)
class Effect:
    """A change to the store during one turn. `key`: ID of the changed record."""

    kind: str
    key: str
    values: Values = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.key} {self.values}"


class World(Protocol):
    """A domain as its users and the judge see it."""

    grammar: Grammar
    folder: str

    @property
    def invented(self) -> Sequence[str]:
        """Slots that `readers.Reader.WRONG` fills with invented values."""
        ...

    async def invent_goal(self, chance: Random) -> list[Wish]: ...

    def opening(self, wish: Wish) -> str:
        """Return the grammar's act that asks for the wish."""
        ...

    def dact(self, wish: Wish) -> str:
        """Return the name of the flow that fulfills the wish."""
        ...

    def word(self, slot: str, value: Any, chance: Random) -> dict[str, str]:
        """Return phrases for a slot's value, by field of the grammar's patterns."""
        ...

    def model_slots(self, slots: Mapping[str, Any]) -> Values: ...

    def invent(self, slot: str, chance: Random) -> Any: ...

    def changeable(self, wish: Wish) -> Sequence[str]:
        """Return the slots that the user may change."""
        ...

    def changed(self, wish: Wish) -> None:
        """Update the wish after the user has changed one of its values."""
        ...

    def tails(self, wish: Wish, said: frozenset[str]) -> Sequence[str]:
        """Return the acts that add optional values to a request. `said`: fields that the request contains."""
        ...

    def read(self, text: str, actions: Sequence[Mapping[str, Any]]) -> Seen: ...

    def hear(self, wish: Wish, seen: Seen, agreement: Agreement | None) -> None:
        """Update the wish with the outcome that the answer `seen` reports. `agreement`: what the user confirmed."""
        ...

    def choose(self, wish: Wish, seen: Seen, chance: Random) -> tuple[str, Values] | None:
        """Return the act and fields of the message that chooses a displayed row, or None to choose no row."""
        ...

    def deeds(self, wish: Wish) -> list[Deed]:
        """Return the side effects that the wish still requires."""
        ...

    def differences(self, offer: Seen, deed: Deed) -> list[str]: ...

    async def look(self, records: Records | None) -> Store: ...

    def effects(self, before: Store, after: Store) -> list[Effect]: ...

    def permits(self, effect: Effect, agreement: Agreement | None, wish: Wish | None) -> bool: ...

    def untruths(
        self, seen: Seen, store: Store, wishes: Sequence[Wish], effects: Sequence[Effect]
    ) -> list[str]:
        """Return descriptions of statements in the answer `seen` that contradict the store."""
        ...

    def missing(self, wishes: Sequence[Wish], store: Store) -> list[str]:
        """Return descriptions of outcomes that are missing or unwanted at the end of the conversation."""
        ...
