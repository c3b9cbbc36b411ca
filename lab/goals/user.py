"""A simulated user that reads answers and replies according to its wishes.

It confirms only offers that fit a wish, and does not know the flows, slots or states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

from lab.goals.goal import Agreement, Deed, Move, Seen, Values, Wish, World, meant
from lab.goals.near_yes import NearYes
from orchestrator.types import JsonObject

MOST_TURNS = 30
MOST_WITHOUT_PROGRESS = 3
CLICKS = 0.3
"""Probability that the user clicks an available button instead of typing."""


class User:
    def __init__(self, world: World, wishes: list[Wish], chance: Random, *, typing: float = 0.05) -> None:
        self.world = world
        self.wishes = wishes
        self.agenda = list(wishes)
        self.dead_end = ""
        self._chance = chance
        self._typing = typing
        self._turns = 0
        self._stuck = 0
        self._known: set[str] = set()
        self._last: Move | None = None
        self._yeses: list[tuple[Values, Mapping[str, Any]]] = []
        self._begun: set[Wish] = set()
        self._kept: set[frozenset[str]] = set()
        self._seen = Seen("nothing")
        self._near = NearYes(world.grammar.half)
        self._plain = ""
        """The confirmation to say next, which differs in one word from the previous message, or an empty string."""
        self._offered: Values | None = None
        """The values of the offer that a hasty user has corrected, or None if the reply quoted the correction."""

    @property
    def current(self) -> Wish | None:
        """The first open wish, or None. Wishes about abandoned wishes are abandoned too."""
        for wish in self.agenda:
            wish.wanted = wish.wanted and (wish.about is None or wish.about.wanted)
        return next((wish for wish in self.agenda if wish.is_open), None)

    def begin(self) -> Move:
        wish = self.current
        assert wish is not None
        return self._remember(self._open(wish))

    def answer(self, turn: JsonObject) -> Move | None:
        """Return the user's next move, or None at the end of the conversation."""
        seen = self._seen = self.world.read(turn["reply"], turn["actions"])
        if self._last is not None and _quotes(seen.text, self._last.text):
            self._offered = None
        self._turns += 1
        before = [wish.told for wish in self.wishes]
        agreement = self._last.agreement if self._last is not None else None
        for wish in self.wishes:
            if wish.wanted or (agreement is not None and agreement.wish is wish):
                self.world.hear(wish, seen, agreement)
        self._take_back()
        if [wish.told for wish in self.wishes] != before:
            self._stuck = 0
            self._known.clear()
        if self._last_was("stop") and seen.kind == "nothing" and self.current not in self._begun:
            self._known.clear()  # the assistant has stopped, so the user moves on to another wish
        self._keep_yes(seen)
        move = self._after(seen)
        if move is None:
            return None
        if self._is_stuck(seen):
            return None
        return self._remember(move)

    def _take_back(self) -> None:
        """For each repeated wish, add wishes that cancel its earlier, unwanted outcomes."""
        for wish in self.wishes:
            while wish.told and wish.asked_anew and wish.former:
                ref, _ = wish.former.popitem()
                self.agenda.insert(0, Wish("cancel", {"ref": ref}))
        self.wishes += [wish for wish in self.agenda if wish not in self.wishes]

    def _remember(self, move: Move) -> Move:
        self._last = move
        return move

    def _keep_yes(self, seen: Seen) -> None:
        if seen.kind == "offer" and (button := seen.button("confirm")) is not None:
            self._yeses.append((dict(seen.values), button))

    def _is_stuck(self, seen: Seen) -> bool:
        """Return True if the user gives up after too many turns, in total or without progress."""
        showed = f"{seen.kind} {seen.what} {sorted(seen.values.items(), key=str)} {len(seen.rows)}"
        if self._last is not None and not self._last.cooperates:
            self._known.clear()  # steps repeated after a detour don't count as being stuck
        elif self._last is not None:
            self._stuck = self._stuck + 1 if showed in self._known else 0
        self._known.add(showed)
        if self._stuck >= MOST_WITHOUT_PROGRESS:
            purpose = self._last.purpose if self._last else ""
            self.dead_end = f"no progress with {seen.kind} {seen.what} after “{purpose}”"
        elif self._turns >= MOST_TURNS:
            self.dead_end = f"{MOST_TURNS} turns"
        return bool(self.dead_end)

    def _after(self, seen: Seen) -> Move | None:
        done = next(
            (wish for wish in self.agenda if wish.told and any(t[0] == "done" for t in wish.twists)), None
        )
        if done is not None and seen.kind in {"nothing", "rows"}:
            move = self._twist_when_done(done, str(done.take_twist("done")))
            if move is not None:
                return move
        if seen.back_to:
            self._turn_to(seen.back_to)
        wish = self.current
        if wish is None:
            return self._insist(seen)
        match seen.kind:
            case "offer":
                return self._at_offer(wish, seen)
            case "question":
                return self._at_question(wish, seen)
            case "redo":
                return self._choose_redo(wish, seen)
            case "change" if self._last_was("stop"):
                return self._stop(wish, leave=False)
            case "rows":
                return self._choose_row(wish, seen)
        return self._open(wish)

    def _insist(self, seen: Seen) -> Move | None:
        """Return another request to stop if the assistant continues after the first request, or None to leave."""
        stopped = self._last_was("stop") and seen.kind in {"offer", "question", "change"}
        return self._stop(self.wishes[-1], leave=False) if stopped else None

    def _choose_row(self, wish: Wish, seen: Seen) -> Move:
        chosen = self.world.choose(wish, seen, self._chance)
        if chosen is None:
            return self._open(wish)
        meaning = self._meaning("task", wish, ["flight_number"])
        return self._say(chosen[0], wish, "choose", chosen[1], meaning)

    def _turn_to(self, kind: str) -> None:
        found = next((wish for wish in self.agenda if wish.is_open and wish.kind == kind), None)
        if found is not None and found is not self.current:
            self.agenda.remove(found)
            self.agenda.insert(0, found)

    # Replies to offers

    def _at_offer(self, wish: Wish, seen: Seen) -> Move:
        open_wishes = [wish, *(one for one in self.agenda if one.is_open and one is not wish)]
        deeds = [(one, deed) for one in open_wishes for deed in self.world.deeds(one)]
        fitting = next(((one, deed) for one, deed in deeds if not self.world.differences(seen, deed)), None)
        offered, self._offered = self._offered, None
        if fitting is None:
            return self._agree_hastily(wish, seen, offered) or self._refuse(wish, seen)
        twist = fitting[0].take_twist("offer")
        move = self._twist_at_offer(fitting[0], fitting[1], seen, twist) if twist else None
        return move or self._agree(fitting[0], fitting[1], seen)

    def _agree(self, wish: Wish, deed: Deed, seen: Seen) -> Move:
        agreement = Agreement(wish, deed)
        button = seen.button("confirm")
        if button is not None and self._chance.random() < CLICKS:
            return Move("agree", action=button, agreement=agreement)
        # A user who is asked again uses the suggested word.
        asked_again = self._last_was("agree")
        plain, self._plain = self._plain, ""
        said = plain or self.world.grammar.say("yes", {}, self._chance).text
        text = "yes" if asked_again else said
        return Move("agree", text, meaning=meant("confirmation", self.world.dact(wish)), agreement=agreement)

    def _agree_hastily(self, wish: Wish, seen: Seen, offered: Values | None) -> Move | None:
        """Confirm an offer that silently ignores the user's correction. Return None for other offers."""
        if seen.values != offered:
            return None
        deed = next((one for one in self.world.deeds(wish) if one.kind == seen.what), None)
        if deed is None:
            return None
        meaning = meant("confirmation", self.world.dact(wish))
        return Move("hasty yes", "yes", meaning=meaning, agreement=Agreement(wish, deed))

    def _refuse(self, wish: Wish, seen: Seen) -> Move:
        """Correct a wrong value of the offer `seen` or decline the offer. After a refusal, stop the task instead."""
        if wish not in self._begun:
            return self._stop(wish, leave=False)  # the offer belongs to an abandoned wish
        alike = [deed for deed in self.world.deeds(wish) if deed.kind == seen.what]
        wrong = min((self.world.differences(seen, deed) for deed in alike), key=len, default=[])
        if alike and wrong:
            deed = min(alike, key=lambda one: len(self.world.differences(seen, one)))
            slot = deed.slots.get(wrong[0], wrong[0])
            if slot in wish.values and self.world.grammar.knows(f"correct_{slot}"):
                return self._correct(wish, slot, None)
        if self._last_was("refuse"):
            return self._stop(wish, leave=False)
        text = self.world.grammar.say("no", {}, self._chance).text
        return Move("refuse", text, meaning=meant("denial", self.world.dact(wish)))

    def _twist_at_offer(self, wish: Wish, deed: Deed, seen: Seen, twist: str) -> Move | None:
        match twist:
            case "stop":
                return self._stop(wish, leave=True)
            case "hedge":
                return self._say_only("hedge", "hedge", meant("unknown"))
            case "near_yes" | "near_pair":
                return self._nearly_agree(is_pair=twist == "near_pair")
            case "aside":
                return self._aside()
            case "switch":
                return self._switch(wish)
            case "made_up":
                payload = {"flow_id": "flow_0123456789abcdef0123456789abcdef", "slot": None}
                action = {"name": "confirm", "label": "Yes", "payload": payload}
                return Move("made-up click", action=action, cooperates=False)
            case "stale":
                old = next((b for offered, b in self._yeses if offered != seen.values), None)
                return None if old is None else Move("stale click", action=old, cooperates=False)
            case "correct" | "yes_but" | "hasty":
                move = self._change_mind(wish, deed, yes_but=twist == "yes_but")
                self._offered = dict(seen.values) if move is not None and twist == "hasty" else None
                return move
        return None

    def _nearly_agree(self, *, is_pair: bool) -> Move:
        """Return a message that resembles a confirmation.

        `is_pair`: True if the user then confirms in similar words.
        """
        self._plain, text = self._near.pair(self._chance) if is_pair else ("", self._near.say(self._chance))
        return Move("near yes", text, meaning=meant("unknown"), cooperates=False)

    def _change_mind(self, wish: Wish, deed: Deed, *, yes_but: bool) -> Move | None:
        prefix = "yes_but_" if yes_but else "correct_"
        slots = [slot for slot in self.world.changeable(wish) if self.world.grammar.knows(prefix + slot)]
        if not slots:
            return None
        slot = self._chance.choice(slots)
        old, wish.values[slot] = wish.values[slot], self._other(wish, slot)
        taken = [old, *(wish.values.get(other) for other in ("origin", "destination") if other != slot)]
        if wish.values[slot] in taken:
            wish.values[slot] = old
            return None
        self.world.changed(wish)
        return self._correct(wish, slot, old, prefix)

    def _other(self, wish: Wish, slot: str) -> Any:
        return wish.alternatives.pop(slot, None) or self.world.invent(slot, self._chance)

    def _correct(self, wish: Wish, slot: str, old: Any, prefix: str = "correct_") -> Move:
        before = {} if old is None else self.world.word(slot, old, self._chance)
        fields = {f"old_{name}": text for name, text in before.items()}
        return self._say(prefix + slot, wish, "correct", fields, self._meaning("correction", wish, [slot]))

    def _choose_redo(self, wish: Wish, seen: Seen) -> Move:
        """Choose whether to undo, keep or repeat an earlier outcome that the assistant asks about."""
        refs = frozenset(seen.values.get("refs", ()))
        task = seen.button("choose_flow")
        if wish.kind == "cancel" and wish.values.get("ref") in refs and task is not None:
            return Move("ask for", action=task)
        undo = any(refs & one.former.keys() for one in self.wishes)
        once_more = seen.button("repeat_effect") is not None and not wish.outcomes
        name = "compensate_effect" if undo else "repeat_effect" if once_more else "keep_effect"
        agreement = Agreement(wish, undo=refs) if undo else None
        purpose = "undo" if undo else "redo" if once_more else "keep"
        if purpose == "keep" and refs in self._kept:
            return self._stop(wish, leave=False)  # the user has already said that the outcome is wanted
        self._kept.add(refs)
        button = seen.button(name)
        if button is not None and self._chance.random() < CLICKS:
            return Move(purpose, action=button, agreement=agreement)
        number = next((i for i, action in enumerate(seen.actions, 1) if action["name"] == name), 1)
        meaning = meant("slot_value", self.world.dact(wish))
        return Move(purpose, str(number), meaning=meaning, agreement=agreement)

    # Replies to questions

    def _at_question(self, wish: Wish, seen: Seen) -> Move:
        twist = wish.take_twist("question")
        if twist == "stop":
            return self._stop(wish, leave=True)
        if twist == "aside":
            return self._aside()
        if twist == "premature":
            return self._say_only("premature yes", "premature", meant("confirmation", self.world.dact(wish)))
        if seen.what in wish.values:
            # A question after a correction means that the assistant has started a second task.
            wish.asked_anew = wish.asked_anew or (bool(wish.former) and self._last_was("correct"))
            meaning = self._meaning("slot_value", wish, [seen.what])
            return self._say(f"answer_{seen.what}", wish, "answer", {}, meaning)
        return self._stop(wish, leave=False)

    def _twist_when_done(self, wish: Wish, twist: str) -> Move | None:
        if twist == "again" and self._yeses and self._chance.random() < 0.5:
            return Move("second click", action=self._yeses[-1][1], cooperates=False)
        if twist == "again":
            return self._say_only("second yes", "premature", meant("confirmation"))
        if twist == "thanks":
            return self._say_only("thanks", "thanks", meant("chitchat"))
        if twist == "correct":
            told, wish.told = wish.told, False
            move = self._change_mind(wish, Deed(wish.kind, {}), yes_but=False)
            wish.told = told if move is None else False
            return move
        return None

    # Messages at any time

    def _open(self, wish: Wish) -> Move:
        world = self.world
        self._begun.add(wish)
        wish.asked_anew = bool(wish.former)
        act = world.opening(wish)
        values = self._fields(wish)
        said = world.grammar.say(act, values, self._chance, typos=self._mistypes())
        text, fields = said.text, set(said.fields)
        for tail in world.tails(wish, said.fields):
            added = world.grammar.say(tail, values, self._chance)
            text, fields = text + added.text, fields | added.fields
        slots = [
            one for one in wish.values if fields & world.word(one, wish.values[one], self._chance).keys()
        ]
        return Move("ask for", self._finish(text), meaning=self._meaning("task", wish, slots))

    def _say(self, act: str, wish: Wish, purpose: str, more: Mapping[str, str], meaning: Values) -> Move:
        fields = {**self._fields(wish), **more}
        said = self.world.grammar.say(act, fields, self._chance, typos=self._mistypes())
        text = said.text if act.endswith("_body") else self._finish(said.text)  # the text is the value
        return Move(purpose, text, meaning=meaning)

    def _stop(self, wish: Wish, *, leave: bool) -> Move:
        """Stop the current task. `leave`: True if the user abandons the wish.

        If the last message was already a request to stop, the user clicks a stop button, if there is one.
        """
        if leave:
            wish.wanted = False
        button = self._seen.button("cancel_flow") or self._seen.button("deny")
        if button is not None and self._last_was("stop"):
            return Move("stop", action=button)
        text = self.world.grammar.say("stop", {}, self._chance).text
        return Move("stop", text, meaning=meant("cancellation", self.world.dact(wish)))

    def _aside(self) -> Move:
        return self._say_only("aside", "aside", {**meant("digression"), "digression": "question"})

    def _say_only(self, purpose: str, act: str, meaning: Values) -> Move:
        """Return a message that isn't meant to advance a wish."""
        text = self.world.grammar.say(act, {}, self._chance).text
        return Move(purpose, text, meaning=meaning, cooperates=False)

    def _switch(self, wish: Wish) -> Move | None:
        """Ask for another open wish, and return to the current wish later. Return None if there is no other wish."""
        others = (one for one in self.agenda if one.is_open and one is not wish and one.about is not wish)
        later = next(others, None)
        if later is None:
            return None
        self.agenda.remove(wish)
        self.agenda.insert(self.agenda.index(later) + 1, wish)
        return self._open(later)

    def _fields(self, wish: Wish) -> dict[str, str]:
        fields: dict[str, str] = {}
        for slot, value in wish.values.items():
            fields |= self.world.word(slot, value, self._chance)
        return fields

    def _meaning(self, kind: str, wish: Wish, slots: list[str]) -> Values:
        known = {slot: wish.values[slot] for slot in slots if slot in wish.values}
        return {**meant(kind, self.world.dact(wish)), "slots": self.world.model_slots(known)}

    def _mistypes(self) -> bool:
        return self._chance.random() < self._typing

    def _finish(self, text: str) -> str:
        roll = self._chance.random()
        text = text.lower() if roll < 0.3 else text
        return text + self._chance.choice(["", "", "", ".", "!"]) if roll > 0.1 else text

    def _last_was(self, purpose: str) -> bool:
        return self._last is not None and self._last.purpose == purpose


def _quotes(reply: str, message: str) -> bool:
    """Return True if a quotation in the reply shares a word with the message."""
    quoted = {
        word for quote in re.findall(r"“([^”]*)”", reply) for word in re.findall(r"\w{3,}", quote.lower())
    }
    return bool(quoted & set(re.findall(r"\w+", message.lower())))
