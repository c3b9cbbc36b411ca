"""Read requests about tables that have a simple form, as a whole, without a model.

A request of which a word is left over is not read: the user hears which words were not taken. What is no
request about tables is left to what was learnt from examples.
"""

from __future__ import annotations

import re
from dataclasses import replace

from rapidfuzz.distance import OSA

from domains.analytics.language.forms import CONTINUATIONS, FORMS, KNOWN_WORDS, matches
from domains.analytics.language.message import FILLERS, Message, read_message
from domains.analytics.language.names import Names, names_for
from domains.analytics.language.request import Unfit, read_form
from domains.analytics.language.written import is_plain_answer, read_answer, read_written
from domains.analytics.store.sheet import suggest
from orchestrator import Dact, Heard, Mention, Read

_SHORTEST_MISSPELT = 5
LONGEST = 400
"""Characters; what is longer is no simple request."""
NEAR = 85.0
"""How like a name, of 100, a word must be to be a misspelling of it."""
NO_FLOW = Dact("")
"""What is read as no flow is not understood: a question follows, or a model is asked."""
_ELSEWHERE = re.compile(
    r"(?:help|never ?mind|cancel (?:that|it)\b|forget|stop$|skip\b|/"
    r"|(?:go |let's |let us )?(?:back|continue|resume|carry on)\b"
    r"|(?:show )?(?:me )?(?:the )?(?:next|more|page|rest)\b)",
    re.IGNORECASE,
)
"""Beginnings of what is said about the conversation, or a plan, or the pages of an answer."""
_ABOUT_ME = re.compile(
    r"(?:how (?:do|does|can|should|are|is)|can i|is (?:it|this)|what (?:can|do|for|functions|conditions|happens|data)"
    r"|which (?:operators|formulas|source)|why (?:do|should)|who|where (?:do|does|are|were)|will|are my|am i|do i)\b",
    re.IGNORECASE,
)
"""Beginnings of questions about the assistant, as far as they name nothing of the tables."""
_ABOUT_FORMS = re.compile(
    r"(?:how (?:do|can|should) (?:i|one|you)|what (?:conditions|functions)|which (?:operators|formulas))\b",
    re.IGNORECASE,
)
"""Beginnings of questions about conditions and formulas, words that name columns as well."""
_CORRECTING = re.compile(
    r"(?:(?:no|actually|sorry|wait|rather|oh|i mean|i meant|(?:change|set|make) the condition to)\b[ ,.:]*)+",
    re.IGNORECASE,
)
_BARE_CORRECTION = re.compile(r"(?:not [TCVN]\d+ ,? ?)?(?:(?:by|column|table) )*[TCVN]\d+(?: instead)?")
"""A name or number alone, or in place of another: which slot it is for is not for this reader to say."""
_PLACE = re.compile(
    r"(?:the )?(?:(?:first|second|third|fourth|fifth|last|\d+(?:st|nd|rd|th))(?: (?:one|row))?|(?:row|number) \d+)"
    r"[ .!?]*",
    re.IGNORECASE,
)
"""A row by its place, and nothing that is to be done with it."""
_YES_OR_NO = re.compile(
    r"(?:yes|yep|yeah|no|nope|ok|okay|sure|do it|go|don't|please|stop|cancel)\b", re.IGNORECASE
)
_ASKS = re.compile(
    r"\b(?:show|list|find|get|select|display|describe|preview|profile|count|sort|filter|keep|delete|remove|drop|rename"
    r"|merge|join|split|pivot|fill|clean|export|compare|which|how many|rows?|columns?|reports?|(?:bar|line|scatter)"
    r"|charts?|graphs?|plot|draw|histogram|pie|dashboards?|forecasts?|predict|make|create|build|duplicates|outliers|missing|statistics|average|median|total|maximum|minimum"
    r"|[a-z]{3,}est|most|least|best|worst|than)\b"
)
"""What asks something of tables even where it names none."""


def read(heard: Heard) -> Read | None:
    """Read a message; None leaves it to the learnt examples."""
    if _ELSEWHERE.match(heard.text) or (heard.confirming and _YES_OR_NO.match(heard.text)):
        return None
    if len(heard.text) > LONGEST:
        return _refuse(f"I take requests of at most {LONGEST} characters.")
    if _PLACE.fullmatch(heard.text) and heard.asked is None:
        return _refuse("Say which rows you mean by their values, like “where year is 1982”.")
    corrected = _CORRECTING.match(heard.text)
    text = heard.text[corrected.end() :] if corrected else heard.text
    names = names_for(heard.own)
    message = read_message(text, names)
    if _ABOUT_FORMS.match(heard.text) and set(message.names) <= {"C"}:
        return None
    if _ABOUT_ME.match(heard.text) and not message.names and "tables" not in message.line:
        return None
    if heard.asked is not None and heard.active is not None:
        answer = read_answer(heard, heard.active, names)
        if answer is not None or is_plain_answer(heard, message):
            return answer
    if corrected and heard.active is not None and message.line == "W" and "condition" in heard.values:
        return Read(heard.active, {"condition": Mention(message.condition, text)})
    if _BARE_CORRECTION.fullmatch(message.line) and (corrected or message.line.startswith("not")):
        return None
    return _read_request(heard, message, names)


def _read_request(heard: Heard, message: Message, names: Names) -> Read | None:
    """Read a request by its form; refuse it where it has none."""
    if not message.line:
        return None
    reasons: list[str] = []
    for candidate in (message, _with_unknown_table(message), _respell(message, names)):
        if candidate is None:
            continue
        try:
            found = read_written(heard, candidate, names) or _read_forms(heard, candidate, names)
        except Unfit as unfit:
            reasons.append(str(unfit))
            continue
        if found is not None and candidate is not None and candidate.text != message.text:
            return replace(found, assumed=(*found.assumed, f"I took that for “{candidate.text}”."))
        if found is not None:
            return found
    if not reasons and not message.names and not _ASKS.search(message.line):
        return None
    return _refuse(reasons[0] if reasons else _explain(message, names))


def _read_forms(heard: Heard, message: Message, names: Names) -> Read | None:
    """Read the first form that fits. Raises Unfit with the reason of the first that does not."""
    reasons: list[Unfit] = []
    for forms in (CONTINUATIONS, FORMS):
        for flow, parts in matches(forms, message.line):
            try:
                found = read_form(heard, message, names, flow, parts, continues=forms is CONTINUATIONS)
            except Unfit as unfit:
                reasons.append(unfit)
                continue
            if found is not None:
                return found
    if reasons:
        raise reasons[0]
    return None


def _with_unknown_table(message: Message) -> Message | None:
    """Take the one word that nothing knows for the name of a table, where the name of one would stand."""
    words = message.line.split()
    strange = [place for place, word in enumerate(words) if _is_strange(word)]
    if len(strange) != 1 or "T" in message.names:
        return None
    place = strange[0]
    after_verb = place == 1 and set(message.names) <= {"N"}
    if not after_verb and words[max(place - 1, 0)] not in {"of", "in", "from", "on", "about", "table"}:
        return None
    return message.with_table(words[place])


def _respell(message: Message, names: Names) -> Message | None:
    """Spell the one word that nothing knows as the word of a form that is nearest to it, if one is near."""
    strange = [word for word in message.line.split() if _is_strange(word)]
    if len(strange) != 1 or len(strange[0]) < _SHORTEST_MISSPELT:
        return None
    near = [word for word in sorted(KNOWN_WORDS) if OSA.distance(word, strange[0], score_cutoff=1) <= 1]
    said = message.as_said(strange[0])
    return read_message(message.text.replace(said, near[0]), names) if len(near) == 1 else None


def _is_strange(word: str) -> bool:
    return re.fullmatch(r"[a-z_]\w*", word) is not None and word not in KNOWN_WORDS and word not in FILLERS


def _explain(message: Message, names: Names) -> str:
    """Say which words were not taken."""
    strange = [word for word in dict.fromkeys(message.line.split()) if _is_strange(word)]
    if not strange:
        return "I know these words, but not put together in this way."
    listed = " and ".join(f"“{message.as_said(word)}”" for word in strange)
    near = suggest(strange[0], names.phrases, others=False, near=NEAR) if len(strange) == 1 else ""
    return f"I did not take {listed}, so I have done nothing.{near}"


def _refuse(why: str) -> Read:
    return Read(NO_FLOW, sure=0.0, assumed=(why,))
