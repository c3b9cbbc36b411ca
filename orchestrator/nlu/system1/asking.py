"""Distinction of questions from proposals in question form, such as “is Monday possible?”."""

from collections.abc import Iterable, Sequence

from orchestrator.nlu.system1.extract.found import Candidate
from orchestrator.nlu.text import word_set

LITTLE = word_set(
    "a an the on in at to from for of it its it's is be i'd like i want please and no not my with by "
    "make that rather only just instead then how what about people persons"
)
"""Words that often surround values."""
_PROPOSALS = {("how", "about"), ("what", "about")}
_WH = word_set("what which where when who whose why how")
ASKING = _WH | word_set("is are was were do does did has will isn't aren't doesn't")
_BEFORE_QUESTION = word_set("and but so wait hold on ok okay well um hm hmm first oh sorry")
_PROPOSING = word_set(
    "ok okay possible fine good available free there too would could can work works alright right"
)
_AROUND_PROPOSED = LITTLE | ASKING | _BEFORE_QUESTION | _PROPOSING


def asks_something(words: Sequence[str], candidates: Iterable[Candidate]) -> bool:
    """Return whether a message asks a question without proposing a value."""
    start = _begin_of_question(words)
    if start == len(words) or words[start] not in ASKING or is_proposal(words):
        return False
    if words[start] in _WH:
        return True
    inside = {at for found in candidates for at in range(found.first, found.last)}
    return not all(
        at in inside or not word.isalnum() or word in _AROUND_PROPOSED for at, word in enumerate(words)
    )


def is_proposal(words: Sequence[str]) -> bool:
    """Return whether a question begins with “how about” or “what about”."""
    start = _begin_of_question(words)
    return tuple(words[start : start + 2]) in _PROPOSALS


def _begin_of_question(words: Sequence[str]) -> int:
    ahead = (at for at, word in enumerate(words) if word.isalnum() and word not in _BEFORE_QUESTION)
    return next(ahead, len(words))
