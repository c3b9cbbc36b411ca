"""Words that postpone, cancel or forbid the current task."""

from collections.abc import Iterable

from orchestrator.nlu.text import tokenize, word_set

_UNDOING = word_set("cancel stop abort quit forget leave drop delete remove undo skip end enough")
_HEDGING = word_set("think thinking wonder whether maybe perhaps unsure moment minute second wait hold")
_GIVING_UP = _UNDOING | word_set("not no don't never nevermind mind scrap changed against anymore off")
_TAKING_BACK = word_set(
    "cancel stop abort quit forget scrap delete undo not no don't never nevermind anymore"
)


def postpones(words: Iterable[str]) -> bool:
    """Return whether words postpone rather than cancel: "let me think about whether I can afford this"."""
    said = frozenset(words)
    return not _HEDGING.isdisjoint(said) and _GIVING_UP.isdisjoint(said)


def is_withdrawal(text: str) -> bool:
    """Return whether a text has a word of withdrawal or refusal."""
    return not _TAKING_BACK.isdisjoint(tokenize(text.casefold().replace("’", "'")).words)
