"""Resume the interrupted task that the user refers to (IR-2)."""

import re
from collections.abc import Iterable

from orchestrator.agent.open_question import leave_open
from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import ChooseTask, Option
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.wording import name_doing

WORD_WEIGHT = 10.0
RECENCY_WEIGHT = 5.0
INTENT_WEIGHT = 3.0
"""Weight of a matching intent, larger than `MARGIN` so that it decides between otherwise equal flows."""
MARGIN = 2.0
MOST_CHOICES = 3
SHORTEST_STEM = 4

_WORDS = re.compile(r"\w+")
_COMMON = frozenset(
    """
    a an and are as at back be by can continue do for from get give go going have i in into is it
    let lets like me my of on one or our out please resume return that the them then there these
    this to up us user want was we what with would you your
    """.split()  # noqa: SIM905 - a paragraph reads better than a list
)


def find_words(text: str) -> frozenset[str]:
    """Return a text's words, case-folded, without common words or single characters."""
    words = _WORDS.findall(text.replace("_", " ").casefold())
    return frozenset(word for word in words if len(word) > 1 and word not in _COMMON)


def _is_same_word(left: str, right: str) -> bool:
    """Return whether two words are equal or share a stem, like “book” and “booking”."""
    short, long = sorted((left, right), key=len)
    return left == right or (len(short) >= SHORTEST_STEM and long.startswith(short))


def match_words(mentioned: frozenset[str], flow: BaseFlow) -> frozenset[str]:
    known = find_words(f"{flow.dact} {flow.spec.description}")
    return frozenset(word for word in mentioned if any(_is_same_word(word, other) for other in known))


def score(matched: frozenset[str], flow: BaseFlow, now: float, intent: str | None = None) -> float:
    """Return a flow's score, the sum of three weights: matching words, recent interruption, and matching intent.

    `now`: Unix seconds. `intent`: the intent of the user's message, or None.
    """
    since = flow.interrupted_at if flow.interrupted_at is not None else flow.started_at
    minutes = max(0.0, now - since) / 60
    return (
        (WORD_WEIGHT if matched else 0.0)
        + RECENCY_WEIGHT / (1 + minutes)
        + (INTENT_WEIGHT if intent is not None and flow.spec.intent == intent else 0.0)
    )


def rank(text: str, flows: Iterable[BaseFlow], now: float, intent: str | None = None) -> list[BaseFlow]:
    """Return the flow that `text` means, or up to `MOST_CHOICES` flows that it may mean, best first.

    The user chooses between flows whose scores are within `MARGIN` of the best. A flow is chosen without
    asking if it matches all words that the other flows match, and more: “the hotel booking” does not mean
    “book a flight”.
    """
    mentioned = find_words(text)
    ranked = sorted(
        ((score(words := match_words(mentioned, flow), flow, now, intent), words, flow) for flow in flows),
        key=lambda entry: (-entry[0], -len(entry[1])),
    )
    if not ranked:
        return []
    near = [entry for entry in ranked if ranked[0][0] - entry[0] < MARGIN]
    telling = max(near, key=lambda entry: len(entry[1]))
    if all(entry is telling or entry[1] < telling[1] for entry in near):
        return [telling[2]]
    return [flow for _, _, flow in near[:MOST_CHOICES]]


def resume_task(context: TurnContext, understood: Understanding) -> None:
    """Resume an interrupted task, or ask the user to choose if several tasks match."""
    state = context.state
    waiting = state.stack.interrupted()
    target = understood.target or ""
    known = next((flow for flow in waiting if target in {flow.flow_id, flow.dact}), None)
    if known is not None:
        _resume(context, known)
        return
    active = state.stack.active
    if (
        active is not None
        and target
        and match_words(find_words(target), active)
        and not _fits(waiting, target)
    ):
        leave_open(context)
        return
    match rank(target or understood.text, waiting, context.now, understood.intent):
        case []:
            if active is None:
                context.tell(NoticeKind.NOTHING_TO_RESUME)
            leave_open(context)
        case [flow]:
            _resume(context, flow)
        case flows:
            options = tuple(
                Option(name_doing(flow).capitalize(), "resume_flow", {"flow_id": flow.flow_id})
                for flow in flows
            )
            state.ambiguity.declare(ChooseTask(options=options))
            context.changes.carry_on = False


def _resume(context: TurnContext, flow: BaseFlow) -> None:
    context.state.stack.resume(flow, context.now, reason="the user came back to another task")
    context.tell(NoticeKind.RESUMED, flow_id=flow.flow_id)
    context.changes.asks_again = True
    context.changes.carry_on = True


def _fits(flows: list[BaseFlow], target: str) -> bool:
    return any(match_words(find_words(target), flow) for flow in flows)
