"""The travel world: users book, choose, change and cancel flights and trips.

Users know only the texts and buttons of answers. All wishes are possible with the domain's timetable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from random import Random
from typing import Any

from lab.goals.goal import Agreement, Deed, Effect, Seen, Store, Values, Wish
from lab.goals.grammar import Grammar
from lab.goals.worlds.travel_goals import CITIES, TODAY, USUAL, in_hours, invent, invent_goal, way_back
from lab.goals.worlds.travel_reading import read
from parley import Records

NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
ORDINALS = ("first", "second", "third", "fourth", "fifth")
SLOTS = {"ref": "booking_ref", "seat": "seat_position"}
DACTS = {
    "book": "book_flight", "trip": "plan_trip", "cancel": "cancel_booking",
    "bags": "add_baggage", "seat": "choose_seat", "bookings": "list_bookings",
}  # fmt: skip
ROUTE = ("origin", "destination", "date", "passengers", "cabin")
SEATS = {"window": "A", "middle": "B", "aisle": "C"}


class Travel:
    folder = "travel"
    invented = ("origin", "destination", "date", "passengers", "cabin", "flight_number", "time_of_day")

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar

    async def invent_goal(self, chance: Random) -> list[Wish]:
        return await invent_goal(chance)

    # Words

    def opening(self, wish: Wish) -> str:
        self._fill_reference(wish)
        return "search" if wish.kind == "pick" else wish.kind

    def _fill_reference(self, wish: Wish) -> None:
        if wish.about is not None:
            wish.values["ref"] = wish.about.outcomes.get("", ("PX7K2M", {}))[0]

    def dact(self, wish: Wish) -> str:
        if wish.kind == "pick":
            return "book_flight" if "flight_number" in wish.values else "search_flights"
        return DACTS[wish.kind]

    def word(self, slot: str, value: Any, chance: Random) -> dict[str, str]:
        match slot:
            case "origin" | "destination":
                return {slot: CITIES[value]}
            case "date" | "return_date":
                bare, full = _say_day(date.fromisoformat(value), chance)
                return {slot: bare, f"on_{slot}": full}
            case "passengers" | "bags":
                number = chance.choice([NUMBERS[value], str(value)])
                people = f"{number} {chance.choice(['people', 'passengers']) if value > 1 else 'person'}"
                return {slot: number} | ({"people": people} if slot == "passengers" else {})
            case _:
                return {slot: str(value)}

    def model_slots(self, slots: Mapping[str, Any]) -> Values:
        return {SLOTS.get(slot, slot): CITIES.get(value, value) for slot, value in slots.items()}

    def invent(self, slot: str, chance: Random) -> Any:
        return invent(slot, chance)

    def changeable(self, wish: Wish) -> Sequence[str]:
        """Return the slots that the user may change.

        After both flights of a trip are booked, these are slots that affect both flights.
        """
        is_booked = wish.kind == "trip" and len(wish.outcomes) > 1
        slots = ("origin", "destination") if is_booked else tuple(wish.values)
        return [slot for slot in slots if slot in wish.alternatives or slot in {"bags", "seat"}]

    def changed(self, wish: Wish) -> None:
        """Drop the chosen flight number, and move outcomes that no longer fit to `former`."""
        if wish.values.pop("flight_number", None) is not None:
            wish.kind = "book"
        outcomes, wish.outcomes = wish.outcomes, {}
        now = {deed.part: deed.values for deed in self.deeds(wish)}
        wish.outcomes = {part: told for part, told in outcomes.items() if told[1] == now.get(part)}
        wish.former |= dict(told for part, told in outcomes.items() if part not in wish.outcomes)

    def tails(self, wish: Wish, said: frozenset[str]) -> Sequence[str]:
        """Return the acts that state unusual values, because the assistant doesn't ask for these slots."""
        named = {"passengers": "tail_passengers", "cabin": "tail_cabin", "time_of_day": "tail_time"}
        return [act for slot, act in named.items()
                if slot in wish.values and slot not in said and wish.values[slot] != USUAL.get(slot)]  # fmt: skip

    # Reading

    def read(self, text: str, actions: Sequence[Mapping[str, Any]]) -> Seen:
        return read(text, actions)

    def hear(self, wish: Wish, seen: Seen, agreement: Agreement | None) -> None:
        agreed = agreement is not None and agreement.wish is wish
        if agreement is not None and agreement.undo and "undone" in seen.text:
            undone = {part for part, (ref, _) in wish.outcomes.items() if ref in agreement.undo}
            wish.outcomes = {part: told for part, told in wish.outcomes.items() if part not in undone}
            wish.told = wish.told and not undone
        if agreed and agreement is not None and agreement.deed is not None and agreement.deed.kind == "book":
            told = re.search(r"[Rr]eference is ([A-Z0-9]{6})", seen.text)
            if told:
                wish.outcomes[agreement.deed.part] = (told[1], agreement.deed.values)
                wish.told = wish.wanted and not self.deeds(wish)
        elif (
            agreed
            and agreement is not None
            and agreement.deed is not None
            and agreement.deed.kind == "rebook"
        ):
            ref = agreement.deed.values["ref"]
            if f"Booking {ref} is now" in seen.text:
                wish.former.pop(ref)
                wish.outcomes[""] = (ref, {**agreement.deed.values})
                wish.told = wish.wanted
        elif agreed and wish.kind in {"cancel", "bags"}:
            wish.told = bool(re.search(r"is cancel+ed|^Added|now has", seen.text))
        elif wish.kind == "seat" and wish.is_open:
            wish.told = bool(re.search(r"Seat \w+ \(\w+\) is yours", seen.text))
        elif wish.kind == "bookings" and wish.is_open:
            wish.told = bool(re.search(r"You have (\d+|no) booking", seen.text))

    def choose(self, wish: Wish, seen: Seen, chance: Random) -> tuple[str, Values] | None:
        if wish.kind != "pick" or not seen.rows:
            return None
        rows, by = list(seen.rows), wish.choice
        place = {"last": len(rows) - 1, "cheapest": 0}.get(by, chance.randrange(len(rows)))
        before = [i for i, row in enumerate(rows) if row["flight_number"] == wish.values.get("flight_number")]
        if before:  # the first choice was misunderstood
            place, by = before[0], chance.choice(["ordinal", "airline", "time", "number"])
        row = rows[place]
        airline = row["airline"]
        if by == "airline" and sum(one["airline"] == airline for one in rows) > 1:
            by = "ordinal"
        wish.values["flight_number"] = row["flight_number"]
        fields = {
            "ordinal": ORDINALS[place],
            "number": str(place + 1),
            "airline": airline,
            "departs": row["departs"],
        }
        return f"pick_{by}", fields

    # Side effects

    def deeds(self, wish: Wish) -> list[Deed]:
        self._fill_reference(wish)
        values = wish.values
        if wish.kind in {"book", "pick"}:
            if wish.kind == "pick" and "flight_number" not in values:
                return []
            wanted = {
                slot: values[slot] for slot in (*ROUTE, "flight_number", "time_of_day") if slot in values
            }
            if "" in wish.outcomes:
                return []
            changes = [Deed("rebook", {**wanted, "ref": ref}) for ref, old in wish.former.items()
                       if old["passengers"] == wanted["passengers"]]  # fmt: skip
            return [Deed("book", wanted), *changes]
        if wish.kind == "trip":
            there = {slot: values[slot] for slot in ROUTE if slot in values}
            turned = {"origin": "destination", "destination": "origin", "date": "return_date"}
            legs = [Deed("book", there, "out"), Deed("book", way_back(values), "back", turned)]
            return [leg for leg in legs if leg.part not in wish.outcomes]
        if wish.kind in {"cancel", "bags"}:
            return [] if wish.told else [Deed(wish.kind, dict(values))]
        return []

    def differences(self, offer: Seen, deed: Deed) -> list[str]:
        if offer.what != deed.kind:
            return ["kind"]
        wrong = [slot for slot, value in deed.values.items()
                 if slot in offer.values and offer.values[slot] != value]  # fmt: skip
        if "time_of_day" in deed.values and not in_hours(
            offer.values.get("departs", ""), deed.values["time_of_day"]
        ):
            wrong.append("time_of_day")
        return wrong

    # The store

    async def look(self, records: Records | None) -> Store:
        if records is None:
            return {}
        return {
            row["booking_ref"]: row
            for row in await records.find("bookings", limit=100)
            if row["status"] != "held"
        }

    def effects(self, before: Store, after: Store) -> list[Effect]:
        found: list[Effect] = []
        for ref, row in after.items():
            old = before.get(ref)
            shown = {
                "date": row["day"],
                **{slot: row[slot] for slot in (*ROUTE, "flight_number") if slot in row},
            }
            if old is None:
                found.append(Effect("booked", ref, shown | {"departs": row["departs"]}))
                continue
            if any(old[name] != row[name] for name in ("flight_id", "cabin")):
                found.append(Effect("rebooked", ref, shown | {"departs": row["departs"]}))
            changed = {name for name in ("status", "bags", "seat") if old[name] != row[name]}
            found += [Effect(name, ref, {"was": old[name], "is": row[name]}) for name in sorted(changed)]
        return found

    def permits(self, effect: Effect, agreement: Agreement | None, wish: Wish | None) -> bool:
        if effect.kind == "seat":
            if wish is None or wish.kind != "seat" or wish.values.get("ref") != effect.key:
                return not effect.values["is"]  # the new flight has a different seat, or no seat yet
            return effect.values["is"][-1:] == SEATS[wish.values["seat"]]
        if agreement is None:
            return False
        if effect.kind == "status":
            deed = agreement.deed
            agreed = {deed.values["ref"]} if deed is not None and deed.kind == "cancel" else agreement.undo
            return effect.key in agreed
        deed = agreement.deed
        if deed is None:
            return False
        if effect.kind == "bags":
            return deed.kind == "bags" and (effect.key, effect.values["is"]) == (
                deed.values["ref"],
                deed.values["bags"],
            )
        if (effect.kind, deed.kind) not in {("booked", "book"), ("rebooked", "rebook")}:
            return False
        if deed.kind == "rebook" and deed.values["ref"] != effect.key:
            return False
        as_agreed = all(
            effect.values[slot] == deed.values[slot] for slot in deed.values.keys() & effect.values.keys()
        )
        return as_agreed and in_hours(effect.values["departs"], deed.values.get("time_of_day", ""))

    def untruths(
        self, seen: Seen, store: Store, wishes: Sequence[Wish], effects: Sequence[Effect]
    ) -> list[str]:
        text, found = seen.text, []
        new = {effect.key for effect in effects}
        found += [f"says that {ref} is booked, but it is not"
                  for ref in re.findall(r"[Rr]eference is ([A-Z0-9]{6})", text) if ref not in new]  # fmt: skip
        found += [f"says that {ref} is cancelled, but it is not"
                  for ref in re.findall(r"Booking ([A-Z0-9]{6}) is cancel+ed\.", text)
                  if store.get(ref, {}).get("status") != "cancelled"]  # fmt: skip
        found += [f"says that {ref} is changed, but it is not"
                  for ref in re.findall(r"Changed\. Booking ([A-Z0-9]{6}) is now", text) if ref not in new]  # fmt: skip
        for effect in effects:
            if effect.kind in {"booked", "rebooked"} and effect.key not in text:
                found.append(f"{effect.kind} {effect.key} without reporting it")
            if effect.kind == "status" and not re.search(r"cancel|undone", text):
                found.append(f"cancelled {effect.key} without reporting it")
        return found + _false_trips(text, store, wishes)

    def missing(self, wishes: Sequence[Wish], store: Store) -> list[str]:
        found = [f"{wish.kind} {wish.values} was not done" for wish in wishes if wish.is_open]
        for wish in wishes:
            cancelled = any(one.kind == "cancel" and one.about is wish and one.told for one in wishes)
            for ref, _ in wish.outcomes.values():
                if not cancelled and store[ref]["status"] != "confirmed":
                    found.append(f"{ref} was confirmed and reported, but is not booked")
            found += [f"{ref} is still booked after a change of mind" for ref in sorted(wish.former)
                      if store[ref]["status"] == "confirmed"]  # fmt: skip
        return found


def _say_day(day: date, chance: Random) -> tuple[str, str]:
    """Return a phrase for a day, first without and then with its preposition."""
    ahead = (day - TODAY).days
    if ahead == 1:
        return "tomorrow", "tomorrow"
    if ahead < 6 and chance.random() < 0.4:
        return f"{day:%A}", f"on {day:%A}"
    bare = chance.choice([f"{day.day} {day:%B}", f"{day:%B} {day.day}", f"{day:%A} {day.day} {day:%B}",
                          f"the {_th(day.day)} of {day:%B}", f"{day.day} {day:%b}", day.isoformat()])  # fmt: skip
    return bare, f"on {bare}"


def _th(number: int) -> str:
    ending = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _false_trips(text: str, store: Store, wishes: Sequence[Wish]) -> list[str]:
    """Return descriptions of errors if the answer reports a booked trip that differs from the store."""
    told = re.search(r"trip to .*?\((\w{3})\) is planned and booked\.(.*)", text)
    trip = next((wish for wish in wishes if wish.kind == "trip"), None)
    if told is None or trip is None:
        return []
    refs = re.findall(r"(?:Outbound|Return): ([A-Z0-9]{6})", told[2])
    rows = [store[ref] for ref in refs if ref in store and store[ref]["status"] == "confirmed"]
    flown = {(row["origin"], row["destination"]) for row in rows}
    found = [] if len(refs) == 2 else [f"says the trip is booked with {len(refs)} of 2 flights"]
    home = trip.values["origin"]
    wanted = {(home, told[1]), (told[1], home)}
    return found + ([f"says the trip to {told[1]} is booked, but the flights are {sorted(flown)}"]
                    if refs and not flown <= wanted else [])  # fmt: skip
