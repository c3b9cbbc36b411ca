"""What is remembered of the user, as prompts are given it: little, each with where it is from (CO-4)."""

from orchestrator.context import TurnContext
from orchestrator.dialogue.records import Label
from orchestrator.memory.user_memory import say_where_from
from orchestrator.tools.trifecta import join_labels

MOST_RECALLED = 6
SOURCE = "what is remembered of you"


async def recall_for_prompt(context: TurnContext, words: str) -> list[str]:
    """List what is remembered of the user, what these words are about first; its labels join the session's.

    What was made of untrusted text is left out: nobody but the user tells a model what the user wants.
    """
    preferences = context.recall.preferences
    found = [] if preferences is None else await preferences.find(words)
    trusted = [one for one in found if Label.UNTRUSTED not in one.labels][:MOST_RECALLED]
    for one in trusted:
        join_labels(context.changes.state, one.labels, SOURCE)
    return [f"{one.text or f'{one.key}: {one.value}'} ({say_where_from(one)})" for one in trusted]
