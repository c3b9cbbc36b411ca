"""Keep, close or leave the open question when a message does not answer it."""

from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.ambiguity import Level
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Understanding
from orchestrator.nlu.nlu_context import find_last_said
from orchestrator.nlu.plain_yes import is_plain_yes

OPEN = "open"
"""About a question that a skill left open; any words answer it."""


_LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "nl": "Dutch",
}


def reject(turn: RunningTurn, why: str) -> None:
    """A message that `prepare` turned away: no flow is stacked (AG-5)."""
    names = ", ".join(
        _LANGUAGES.get(code, code) for code in turn.context.world.domain.config.language.supported
    )
    asks = turn.changes.state.ambiguity.current is not None
    turn.changes.remark(RemarkKind.REJECTED, why=why, languages=names, asks=asks)
    leave_open(turn)


def is_asked_by_skill(turn: RunningTurn) -> bool:
    entry = turn.changes.state.ambiguity.current
    asked = entry is not None and entry.metadata.get("about") == OPEN
    return asked and turn.changes.state.stack.active is not None


def answer_open(turn: RunningTurn) -> bool:
    """Whether a skill asked: then it goes on, and reads the user's words itself."""
    entry = turn.changes.state.ambiguity.current
    if entry is None or not is_asked_by_skill(turn):
        return False
    turn.changes.state.ambiguity.resolve(entry)
    turn.carry_on = True
    return True


def leave_open(turn: RunningTurn) -> None:
    """Nothing changes; a task's open question is asked again without counting a round.

    What we did not understand before is not asked about any more.
    """
    turn.changes.state.ambiguity.resolve(level=Level.GENERAL)
    turn.changes.asks_again = True
    turn.carry_on = (
        turn.changes.state.ambiguity.current is None and turn.changes.state.stack.active is not None
    )


def find_answer(turn: RunningTurn, name: str | None) -> str | None:
    return next((answer.text for answer in turn.context.world.domain.answers if answer.name == name), None)


def is_plain(turn: RunningTurn, understood: Understanding) -> bool:
    """Say whether a yes does nothing but agree: whoever understood it so, words may hedge, ask or add (PX-18)."""
    domain = turn.context.world.domain
    is_known = domain.config.language.default == "en" or domain.lexicon
    if understood.is_click or not is_known:
        return True
    return says_yes(turn, understood)


def says_yes(turn: RunningTurn, understood: Understanding) -> bool:
    """Say whether words that nobody took for a yes are a plain one to what was asked last; English ones only."""
    return is_plain_yes(understood.text, find_last_said(turn.changes.state, "agent"))


def nothing_open(turn: RunningTurn) -> None:
    if turn.changes.state.stack.active is None:
        turn.changes.remark(RemarkKind.NOTHING_OPEN)
    leave_open(turn)
