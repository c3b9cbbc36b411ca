"""The notes world: users keep notes, in a domain created by `parley domain new`."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from lab.goals.goal import Agreement, Deed, Effect, Seen, Store, Values, Wish
from lab.goals.grammar import Grammar
from parley import Records
from parley.commands.domain import scaffold as scaffold_domain

TOPICS = ("home", "work", "travel")
BODIES = (
    "buy milk", "call Anna at four", "water the plants", "pay the rent by Friday", "send the report to Tom",
    "yes we can", "no more sugar", "stop at the bakery", "cancel the newspaper", "help Maria with the boxes",
    "hello to all", "thanks to the team", "the second one was better", "travel light", "work out more",
    "bring the car to the garage", "make it six chairs", "ask what the time is", "two bags of soil",
    "never mind the gap",
)  # fmt: skip
AT_OFFER = ("correct", "hasty", "hedge", "near_yes", "near_pair", "aside", "stop", "switch", "made_up")
AT_QUESTION = ("aside", "premature", "stop")
DACTS = {"add_note": "add_note", "list_notes": "list_notes"}


@cache
def scaffolded() -> str:
    folder = Path(tempfile.mkdtemp(prefix="parley-goals-"))
    return str(scaffold_domain("notes", folder))


class Notes:
    invented = ("topic", "body")

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.folder = scaffolded()

    async def invent_goal(self, chance: Random) -> list[Wish]:
        wishes = [Wish("add_note", {"topic": chance.choice(TOPICS), "body": chance.choice(BODIES)})
                  for _ in range(chance.choice([1, 1, 2]))]  # fmt: skip
        if chance.random() < 0.4:
            wishes.append(Wish("list_notes", {"topic": chance.choice(TOPICS)}))
        for wish in wishes:
            if wish.kind == "add_note" and chance.random() < 0.5:
                wish.twists.append(("offer", chance.choice(AT_OFFER)))
            if chance.random() < 0.2:
                wish.twists.append(("question", chance.choice(AT_QUESTION)))
        return wishes

    def opening(self, wish: Wish) -> str:
        return wish.kind

    def dact(self, wish: Wish) -> str:
        return DACTS[wish.kind]

    def word(self, slot: str, value: Any, chance: Random) -> dict[str, str]:
        return {slot: str(value)}

    def model_slots(self, slots: Mapping[str, Any]) -> Values:
        return dict(slots)

    def invent(self, slot: str, chance: Random) -> Any:
        return chance.choice(TOPICS if slot == "topic" else BODIES)

    def changeable(self, wish: Wish) -> Sequence[str]:
        return list(wish.values)

    def changed(self, wish: Wish) -> None:
        """Do nothing: the values are independent."""

    def tails(self, wish: Wish, said: frozenset[str]) -> Sequence[str]:
        return ()

    def read(self, text: str, actions: Sequence[Mapping[str, Any]]) -> Seen:
        def seen(kind: str, what: str = "", values: Values | None = None) -> Seen:
            return Seen(kind, what, values or {}, (), back_to, text, actions)

        back_to = "add_note" if re.search(r"Back to (writing|add)", text) else ""
        asked = [line for line in text.split("\n") if line.strip().endswith("?")]
        last = asked[-1] if asked else ""
        if any(action["name"] == "compensate_effect" for action in actions):
            return seen("redo")
        if any(action["name"] == "confirm" for action in actions):
            return seen("offer", "add_note", _read_offer(text))
        if "like to change?" in last:
            return seen("change")
        if "home, work or travel" in last:
            return seen("question", "topic")
        return seen("question", "body") if "write down?" in last else seen("nothing")

    def hear(self, wish: Wish, seen: Seen, agreement: Agreement | None) -> None:
        if not wish.is_open:
            return
        if wish.kind == "list_notes":
            wish.told = (
                bool(re.search(r"found|no notes|nothing|notes? about", seen.text, re.IGNORECASE))
                and seen.kind == "nothing"
            )
        elif agreement is not None and agreement.wish is wish:
            wish.told = bool(re.search(r"[Nn]oted|[Dd]one|[Ww]ritten|kept", seen.text))

    def choose(self, wish: Wish, seen: Seen, chance: Random) -> None:
        """Return None, because this domain displays no rows."""

    def deeds(self, wish: Wish) -> list[Deed]:
        return [Deed("add_note", dict(wish.values))] if wish.kind == "add_note" and not wish.told else []

    def differences(self, offer: Seen, deed: Deed) -> list[str]:
        return [slot for slot, value in deed.values.items()
                if slot in offer.values and offer.values[slot].lower() != value.lower()]  # fmt: skip

    async def look(self, records: Records | None) -> Store:
        if records is None:
            return {}
        return {str(number): note for number, note in enumerate(await records.find("notes", limit=100))}

    def effects(self, before: Store, after: Store) -> list[Effect]:
        known = [(note["topic"], note["body"]) for note in before.values()]
        found: list[Effect] = []
        for note in after.values():
            pair = (note["topic"], note["body"])
            if pair in known:
                known.remove(pair)
            else:
                found.append(Effect("noted", note["topic"], {"topic": note["topic"], "body": note["body"]}))
        return found

    def permits(self, effect: Effect, agreement: Agreement | None, wish: Wish | None) -> bool:
        if agreement is None or agreement.deed is None:
            return False
        wanted = agreement.deed.values
        return all(
            effect.values[slot].strip(" .!").lower() == str(wanted[slot]).lower()
            for slot in ("topic", "body")
        )

    def untruths(
        self, seen: Seen, store: Store, wishes: Sequence[Wish], effects: Sequence[Effect]
    ) -> list[str]:
        claimed = bool(re.search(r"^(Noted|Done)", seen.text, re.MULTILINE))
        if claimed and not effects:
            return ["says that it is noted, but it is not"]
        return ["noted something without reporting it"] if effects and not claimed else []

    def missing(self, wishes: Sequence[Wish], store: Store) -> list[str]:
        return [f"{wish.kind} {wish.values} was not done" for wish in wishes if wish.is_open]


def _read_offer(text: str) -> Values:
    values: Values = {}
    topics = [
        topic
        for topic in TOPICS
        if re.search(rf"topic\W+{topic}|about {topic}|\({topic}\)", text, re.IGNORECASE)
    ]
    if len(topics) == 1:
        values["topic"] = topics[0]
    body = re.search(r"[Bb]ody\W+([^.,;?\n]+)", text)
    if body:
        values["body"] = body[1].strip(' “”"*')
    return values
