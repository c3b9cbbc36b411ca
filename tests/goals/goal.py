"""What a simulated user wants, does and reads: the words between users, worlds and the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, TypeAlias

from parley import Records
from tests.goals.grammar import Grammar

Values: TypeAlias = dict[str, Any]
Store: TypeAlias = dict[str, dict[str, Any]]
"""What lies in a domain's store, by identifier: bookings, notes."""


@dataclass(eq=False)
class Wish:
    """One thing that a user wants done or wants to know.

    `twists`: what is still to happen on the way, each with the stage at which it does. `about`: an earlier wish
    whose outcome this one concerns. `wanted` ends when the user says stop, `told` begins when they hear it is done.
    """

    kind: str
    values: Values
    twists: list[tuple[str, str]] = field(default_factory=list)
    about: Wish | None = None
    wanted: bool = True
    told: bool = False
    alternatives: Values = field(default_factory=dict)
    """Another value of each slot that can be had as well."""
    choice: str = ""
    """By what one of several is chosen."""
    outcomes: dict[str, tuple[str, Values]] = field(default_factory=dict)
    """By part of the wish, the identifier that the user was told, and what was agreed to."""
    former: dict[str, Values] = field(default_factory=dict)
    """Outcomes that a change of mind has made unwanted, by identifier, each with what was agreed to."""
    asked_anew: bool = False
    """Asked for once more after a change of mind: then nobody but the user takes back what there was."""

    @property
    def is_open(self) -> bool:
        return self.wanted and not self.told

    def take_twist(self, stage: str) -> str | None:
        """The twist that comes first at this stage, once."""
        for twist in self.twists:
            if twist[0] == stage:
                self.twists.remove(twist)
                return twist[1]
        return None


@dataclass(frozen=True)
class Deed:
    """One effect that a wish needs. `slots`: where an offer's value comes from another slot of the wish."""

    kind: str
    values: Values
    part: str = ""
    slots: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Agreement:
    """A plain yes to an offer that fits the goal; `undo`: to take back what these name."""

    wish: Wish
    deed: Deed | None = None
    undo: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Move:
    """One thing that a user says or clicks.

    `meaning`: what a model that understands rightly answers. `cooperates`: it is meant to bring the wish forward.
    """

    purpose: str
    text: str = ""
    action: Mapping[str, Any] | None = None
    meaning: Mapping[str, Any] | None = None
    agreement: Agreement | None = None
    cooperates: bool = True


def meant(kind: str, *dacts: str) -> Values:
    """Write what a model that understands rightly answers, so far without values."""
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
    """What a reader takes from an answer: words and buttons, nothing else.

    `kind`: offer, question, change, redo, rows, nothing. `what`: the kind of deed offered, or the slot asked for.
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
    """A change of the store in one turn."""

    kind: str
    key: str
    values: Values = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.key} {self.values}"


class World(Protocol):
    """A domain as its users and its outside systems know it; nothing of how it is carried out."""

    grammar: Grammar
    folder: str

    @property
    def invented(self) -> Sequence[str]:
        """Slots that a model makes up values for."""
        ...

    async def invent_goal(self, chance: Random) -> list[Wish]: ...

    def opening(self, wish: Wish) -> str:
        """The act by which the wish is asked for."""
        ...

    def dact(self, wish: Wish) -> str:
        """The task that the wish is, for the model that understands rightly."""
        ...

    def word(self, slot: str, value: Any, chance: Random) -> dict[str, str]:
        """A value in words, by field of the patterns."""
        ...

    def model_slots(self, slots: Mapping[str, Any]) -> Values:
        """Values as a model writes them."""
        ...

    def invent(self, slot: str, chance: Random) -> Any:
        """Another value for a slot."""
        ...

    def changeable(self, wish: Wish) -> Sequence[str]:
        """Slots about which the user may think again."""
        ...

    def changed(self, wish: Wish) -> None:
        """A value of the wish is another now: what hung on the old one goes."""
        ...

    def tails(self, wish: Wish, said: frozenset[str]) -> Sequence[str]:
        """Acts that add an optional value to a request which has not said it."""
        ...

    def read(self, text: str, actions: Sequence[Mapping[str, Any]]) -> Seen: ...

    def hear(self, wish: Wish, seen: Seen, agreement: Agreement | None) -> None:
        """Note on the wish what the answer says became of it."""
        ...

    def choose(self, wish: Wish, seen: Seen, chance: Random) -> tuple[str, Values] | None:
        """The act and fields that refer to one of the rows displayed; None where no row is to be chosen."""
        ...

    def deeds(self, wish: Wish) -> list[Deed]:
        """The effects that the wish still needs."""
        ...

    def differences(self, offer: Seen, deed: Deed) -> list[str]: ...

    async def look(self, records: Records | None) -> Store: ...

    def effects(self, before: Store, after: Store) -> list[Effect]: ...

    def permits(self, effect: Effect, agreement: Agreement | None, wish: Wish | None) -> bool: ...

    def untruths(
        self, seen: Seen, store: Store, wishes: Sequence[Wish], effects: Sequence[Effect]
    ) -> list[str]:
        """What the answer says and the store does not have, or the other way about."""
        ...

    def missing(self, wishes: Sequence[Wish], store: Store) -> list[str]:
        """What is still wanted and not in the store, or no longer wanted and still there."""
        ...
