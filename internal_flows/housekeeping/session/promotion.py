"""Which notes of a session are worth keeping beyond it, and why (CO-4). Pure rules; the flows act on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.memory.tokenizer import find_terms
from orchestrator.ports.memory.context import GATHER_CONTEXT
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.types import Json, JsonObject, is_object

FREQUENT = 3
SALIENT = 0.6
SURPRISING = 0.4
PROMOTED = "promoted"
"""Where an entry's data say what became of it."""
TIMES = "times"
"""Where an entry's data say how often it was noted."""


_LASTING = re.compile(
    r"\b(?:I|we) (?:always|never|usually|normally|generally|prefer)\b"
    r"|\b(?:I am|I['’]m|we are|we['’]re|\w+ is) (?:a )?(?:vegetarian|vegan|diabetic|allergic|left-handed)"
    r"|\b(?:my|our) (?:name|home|birthday|diet|employer|company|wife|husband|partner|son|daughter|child(?:ren)?"
    r"|(?:home|favou?rite|usual) \w+)(?: \w+)? (?:is|are|was)\b",
    re.IGNORECASE,
)


def is_lasting(sentence: str) -> bool:
    """Say whether a user tells something of themselves that will be so in another conversation, too."""
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
    """The bars that a note has to reach; from a flow's configuration."""

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
    """The data of an entry, besides its text."""
    return entry.data if is_object(entry.data) else {}


def select(entries: Sequence[Entry], about: About) -> list[Entry]:
    """Findings about this that were not promoted yet, each once, with how often it was noted.

    What was looked up for a task is known where it was found, and no statement of anybody.
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
    """The entry with something added to what is known of it."""
    return Entry.from_json({**entry.to_json(), "data": {**data_of(entry), **more}})


def find_cause(entry: Entry, known: float, bars: Bars) -> Cause | None:
    """Why an entry is worth keeping; None: it is not. What nobody has judged is not salient.

    Args:
        entry: from `select`.
        known: how much of it is known already, from 0 to 1: the rest is its surprise.
        bars: what it has to reach.
    """
    data = data_of(entry)
    if data.get("explicit") is True:
        return Cause.EXPLICIT
    if data.get(TIMES, 1) >= bars.frequent:
        return Cause.FREQUENT
    salience = data.get("salience")
    judged = float(salience) if isinstance(salience, int | float) else 0.0
    return Cause.SALIENT if judged >= bars.salient and 1 - known >= bars.surprising else None


def overlap(text: str, other: str) -> float:
    """The share of the terms of a text that another one has."""
    terms = set(find_terms(text))
    return len(terms & set(find_terms(other))) / len(terms) if terms else 1.0


def describe_origin(entry: Entry, run_id: str, session_id: str, cause: Cause) -> JsonObject:
    """Where something that was promoted came from."""
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
