"""Select a few memories for prompts, each with its source (CO-4)."""

from orchestrator.context import TurnContext
from orchestrator.dialogue.records import Label
from orchestrator.memory.user_memory import day_said
from orchestrator.tools.trifecta import join_labels

MOST_RECALLED = 6
SOURCE = "what I remember about you"


async def recall_for_prompt(context: TurnContext, words: str) -> list[str]:
    """Return up to `MOST_RECALLED` memories relevant to `words`, and add their labels to the session.

    Memories derived from untrusted text are omitted, because only the user may tell a model what the user
    wants.
    """
    preferences = context.recall.preferences
    found = [] if preferences is None else await preferences.find(words)
    trusted = [one for one in found if Label.UNTRUSTED not in one.labels][:MOST_RECALLED]
    for one in trusted:
        join_labels(context.state, one.labels, SOURCE)
    return [
        f"{one.text or f'{one.key}: {one.value}'} ({one.source.value}, {day_said(one)})" for one in trusted
    ]
