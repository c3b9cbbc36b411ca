"""Rules that decide which scratchpad entries to keep beyond a session (CO-4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.ports.memory.context import GATHER_CONTEXT
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.types import Json, JsonObject, is_object

FREQUENT = 3
SALIENT = 0.6
SURPRISING = 0.4
PROMOTED = "promoted"
"""Key in an entry's data for the ID of the promoted content."""
TIMES = "times"
"""Key in an entry's data for its number of occurrences."""


_LASTING = re.compile(
    r"\b(?:I|we) (?:always|never|usually|normally|generally|prefer)\b"
    r"|\b(?:I am|I['’]m|we are|we['’]re|\w+ is) (?:a )?(?:vegetarian|vegan|diabetic|allergic|left-handed)"
    r"|\b(?:my|our) (?:name|home|birthday|diet|employer|company|wife|husband|partner|son|daughter|child(?:ren)?"
    r"|(?:home|favou?rite|usual) \w+)(?: \w+)? (?:is|are|was)\b",
    re.IGNORECASE,
)


def is_lasting(sentence: str) -> bool:
    """Return True if the sentence looks like a user's statement of a lasting fact about themselves."""
    return bool(_LASTING.search(sentence)) and not sentence.rstrip().endswith("?")


class About(StrEnum):
    USER = "user"
    BUSINESS = "business"


class Cause(StrEnum):
    EXPLICIT = "explicit"
    FREQUENT = "frequent"
    SALIENT = "salient"


@dataclass(frozen=True, slots=True)
class Bars:
    """Thresholds for promoting an entry, from a flow's configuration.

    `frequent`: minimum number of occurrences. `salient`: minimum salience, from 0 to 1. `surprising`: minimum
    share of the entry that is not known yet, from 0 to 1.
    """

    frequent: int = FREQUENT
    salient: float = SALIENT
    surprising: float = SURPRISING

    @classmethod
    def of(cls, config: JsonObject) -> Bars:
        return cls(
            int(config.get("frequent", FREQUENT)),
            float(config.get("salient", SALIENT)),
            float(config.get("surprising", SURPRISING)),
        )


def data_of(entry: Entry) -> JsonObject:
    return entry.data if is_object(entry.data) else {}


def select(entries: Sequence[Entry], about: About) -> list[Entry]:
    """Return distinct unpromoted findings about the user or the business, with their number of occurrences.

    Findings of `gather_context` are excluded, because their content is already stored at its source.
    """
    found: dict[str, Entry] = {}
    times: dict[str, int] = {}
    for entry in entries:
        data = data_of(entry)
        fits = About(data.get("about", About.BUSINESS)) is about
        if entry.kind is not EntryKind.FINDING or not entry.text or PROMOTED in data or not fits:
            continue
        if entry.flow == GATHER_CONTEXT:
            continue
        name = " ".join(entry.text.split()).casefold()
        found[name] = entry
        times[name] = times.get(name, 0) + int(data.get(TIMES, 1))
    return [with_data(entry, {TIMES: times[name]}) for name, entry in found.items()]


def with_data(entry: Entry, more: JsonObject) -> Entry:
    return Entry.from_json({**entry.to_json(), "data": {**data_of(entry), **more}})


def find_cause(entry: Entry, known: float, bars: Bars) -> Cause | None:
    """Return why an entry is worth keeping, or None if it isn't.

    Args:
        entry: an entry from `select`. An entry without a salience in its data is not salient.
        known: the share of the entry that is already known, from 0 to 1. The rest is its surprise.
        bars: the thresholds.
    """
    data = data_of(entry)
    if data.get("explicit") is True:
        return Cause.EXPLICIT
    if data.get(TIMES, 1) >= bars.frequent:
        return Cause.FREQUENT
    salience = data.get("salience")
    judged = float(salience) if isinstance(salience, int | float) else 0.0
    return Cause.SALIENT if judged >= bars.salient and 1 - known >= bars.surprising else None


def describe_origin(entry: Entry, run_id: str, session_id: str, cause: Cause) -> JsonObject:
    origin: dict[str, Json] = {
        "session_id": session_id,
        "entry_id": entry.entry_id,
        "flow": entry.flow,
        "from": entry.origin,
        "run_id": run_id,
        "because": cause.value,
        "noted_at": entry.at,
    }
    return origin
