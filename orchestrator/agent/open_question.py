"""Handle the open question if a message does not answer it."""

from orchestrator.context import TurnContext
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import Level
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.languages import LANGUAGES


def reject(context: TurnContext, why: str) -> None:
    """Reply to a message that was rejected before interpretation. Don't push a flow (AG-5)."""
    names = ", ".join(LANGUAGES.get(code, code) for code in context.world.domain.config.language.supported)
    asks = context.state.ambiguity.current is not None
    context.tell(NoticeKind.REJECTED, why=why, languages=names, asks=asks)
    leave_open(context)


def is_asked_by_skill(context: TurnContext) -> bool:
    entry = context.state.ambiguity.current
    asked = entry is not None and entry.about.takes_any_words
    return asked and context.state.stack.active is not None


def answer_open(context: TurnContext) -> bool:
    """Pass the message to the skill that asked the open question. Return False if no skill asked it."""
    entry = context.state.ambiguity.current
    if entry is None or not is_asked_by_skill(context):
        return False
    context.state.ambiguity.resolve(entry)
    context.changes.carry_on = True
    return True


def leave_open(context: TurnContext) -> None:
    """Close general questions, and repeat the task's open question without counting another attempt.

    If no question is open, the running task continues.
    """
    context.state.ambiguity.resolve(level=Level.GENERAL)
    context.changes.asks_again = True
    context.changes.carry_on = (
        context.state.ambiguity.current is None and context.state.stack.active is not None
    )


def is_plain(understood: Understanding) -> bool:
    """Return whether a “yes” is a click or a plain word. Longer agreement does not confirm (PX-18)."""
    return understood.is_click or understood.plain
