"""Cues: words that change the meaning of a message, such as “everything” or “another one”."""

import re
from typing import Final

from orchestrator.dialogue.understanding import Cue

_ANOTHER = re.compile(
    r"\b(?:any|some|what|who|anything|anyone|any ?one|something|someone|is there|are there|got|have|see|hear|show)\b"
    r"[^.?!]*\b(?:else|others?|another|different|more)\b"
    r"|\b(?:another|other|more|different|alternative) (?:ones?|options?|choices?|suggestions?|results?)\b"
    r"|\balternatives?\b|\bnext (?:one|option)\b|\b(?:the )?only (?:\w+ )?(?:one|ones|option|options)\b"
    r"|\bonly \w+ (?:that )?you (?:could|can|did) (?:find|found|see)\b"
)
_NOT_ROWS = re.compile(
    r"\b(?:anything|nothing|something) else (?:i|you|we) (?:need|should|can|could)\b|\bhelp\b"
    r"|\bmore (?:about|details?|info(?:rmation)?)\b"
    r"|\b(?:not|no longer|never|\w+n['’]?t)\b[^.?!]*\b(?:any ?more|any longer)\b"
)
_PATTERNS: Final = {
    Cue.ADDS: re.compile(
        r"\b(?:as well|another one|one more|a second(?: one)?|additionally|in addition|plus)\b|\btoo(?=\W*$|,)"
        r"|\b(?:and|also)\b.*\bone\b|^also (?!make|change|set|correct)",
        re.IGNORECASE,
    ),
    Cue.ALL_TASKS: re.compile(
        r"\b(everything|(all|both) of (it|them|this)|all tasks|(all|both)(?=\W*$))\b", re.IGNORECASE
    ),
    Cue.CORRECTS: re.compile(
        r"\b(?:actually|instead|rather|sorry|oops|wrong|mistake|i mean|i meant|i wanted|should|supposed|change"
        r"|switch|correct|not)\b",
        re.IGNORECASE,
    ),
    Cue.REQUESTS: re.compile(
        r"^(?:(?:hi|hello|ok(?:ay)?|and|now|then|also|please|kindly|just|(?:can|could|would|will) you|[,. ])*"
        r"(?:send|e-?mail|mail|text|print|forward|give|get|fetch|bring|order|call|make|write|show|find|tell)\b"
        r"|.*\b(?:i (?:need|want)|i(?:['’]d| would) like|(?:can|could|may) i (?:get|have)) (?:an?|the|my|some)\b)",
        re.IGNORECASE,
    ),
    Cue.AS_BEFORE: re.compile(
        r"(?<!\bis )(?<!\bare )\bthere\b(?! (?:is|are|was|any|an?)\b)|\bnear ?by\b|\bsame\b|\b(?:in|around) the area\b"
        r"|\bthat (?:area|city|town|place|way|day|date|address|number)\b",
        re.IGNORECASE,
    ),
    Cue.PROGRESS: re.compile(r"\b(?:we|us|far|done|left|status|progress|plan)\b", re.IGNORECASE),
}


def find_cues(text: str) -> frozenset[Cue]:
    found = {cue for cue, pattern in _PATTERNS.items() if pattern.search(text)}
    if asks_for_another(text):
        found.add(Cue.OTHER_ROW)
    return frozenset(found)


def asks_for_another(text: str) -> bool:
    """Return whether an English message asks for rows other than the displayed ones: “anything else?”."""
    said = text.casefold()
    return _ANOTHER.search(said) is not None and _NOT_ROWS.search(said) is None
