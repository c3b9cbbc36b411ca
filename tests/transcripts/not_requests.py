"""Sentences that forbid, report, suppose or recall an action instead of requesting it (NL-8)."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from tests.cases import parts


class Task(NamedTuple):
    """A request, and its verb with other endings, as in English conjugation."""

    verb: str
    rest: str
    past: str
    ing: str


_TRAVEL = (
    Task("book", "a flight to Rome", "booked", "booking"),
    Task("book", "a flight from Oslo to Madrid tomorrow", "booked", "booking"),
    Task("cancel", "my booking", "cancelled", "cancelling"),
    Task("add", "a bag to my booking", "added", "adding"),
    Task("change", "my booking to Friday", "changed", "changing"),
    Task("plan", "a trip to Paris", "planned", "planning"),
    Task("choose", "a window seat", "chose", "choosing"),
)
_ANALYTICS = (
    Task("delete", "the rows of cars from Japan", "deleted", "deleting"),
    Task("rename", "the column hp of cars to power", "renamed", "renaming"),
)
_FORBIDDEN = parts("""don't {verb} {rest} | please do not {verb} {rest} | never {verb} {rest}
    | there is no need to {verb} {rest} | you needn't {verb} {rest} | I don't want you to {verb} {rest}
    | we have decided not to {verb} {rest} | I'd rather not {verb} {rest}
    | under no circumstances {verb} {rest} | I am not going to {verb} {rest} | you must not {verb} {rest}
    | stop {ing} {rest} | let's not {verb} {rest} | let us not {verb} {rest} after all
    | nobody asked you to {verb} {rest} | I would rather you didn't {verb} {rest}""")
_PAST = (
    "I already {past} {rest}",
    "yesterday we {past} {rest}",
    "last week my wife {past} {rest}",
    "I {past} {rest} on the phone this morning",
)
_REPORTED = parts("""my boss says I should {verb} {rest}
    | my colleague wants to know whether you can {verb} {rest} | somebody told me to {verb} {rest}
    | my friend thinks that we should {verb} {rest} | they asked me if I could {verb} {rest}
    | she wonders how to {verb} {rest} | my sister is asking if she can {verb} {rest}
    | our neighbors were wondering whether to {verb} {rest}""")
_SUPPOSED = ("what if I {past} {rest}?", "suppose I {past} {rest}", "imagine we {past} {rest}")
_TRAVELERS = ("we", "I", "my aunt")
_JOURNEYS = ("flew to Lisbon in May", "went to Rome on a Sunday")
_FRAMES = (*_FORBIDDEN, *_PAST, *_REPORTED, *_SUPPOSED)


def _make(tasks: tuple[Task, ...]) -> list[str]:
    return [frame.format(**task._asdict()) for frame, task in product(_FRAMES, tasks)]


NOT_REQUESTS = [
    *(("travel", words) for words in _make(_TRAVEL)),
    *(("analytics", words) for words in _make(_ANALYTICS)),
    *(("travel", f"{who} {went}") for who, went in product(_TRAVELERS, _JOURNEYS)),
]
