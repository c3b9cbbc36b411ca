"""Answers to a choice among displayed candidates: "the second one", "2", or the name of a candidate."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Source, Understanding
from orchestrator.nlu.actions import Action, react
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.numbers import ORDINALS, small_number
from orchestrator.nlu.text import Utterance, key_of, word_set
from orchestrator.types import Dact

_PLACES = ORDINALS | {"former": 0, "latter": -1}
_AROUND = word_set(
    "the one of option number please i want take i'd like choose pick go with let's that is it's ok okay yes"
)


def choose(utterance: Utterance, context: NluContext, flows: Mapping[Dact, FlowSpec]) -> Understanding | None:
    """Interpret a message as an option of the open question, or return None unless exactly one option matches."""
    names = context.question.choices
    if not names or len(utterance.words) > 10:
        return None
    labels = [key_of(label).split(" ") for label, *_ in names]
    shared = set(labels[0]).intersection(*labels)
    # In “stop the first one”, “stop” does not distinguish the options, because all of them stop something.
    index = _by_place([word for word in utterance.words if word not in shared], len(names))
    if index is None:
        index = _by_name(utterance, names)
    if index is None and _stops_all(utterance.words, shared, context):
        index = 0  # any option will do: the words are a cue to stop all tasks
    if index is None:
        return None
    asked = context.question.options[index : index + 1] if "?" in utterance.words else ()
    if any(option.action_name.endswith("_effect") for option in asked):
        return None  # “undo it?” is not a decision
    chosen = react(Action("select_option", {"index": index}), context, flows)
    return replace(chosen, source=Source.SYSTEM1, text=utterance.text)


def _stops_all(words: Sequence[str], shared: Collection[str], context: NluContext) -> bool:
    """Return whether “both” or “stop both of them” answers the question about tasks to stop (FS-12)."""
    if any(option.action_name != "cancel_flow" for option in context.question.options):
        return False
    telling = [word for word in words if word.isalnum() and word not in shared]
    return telling in (["both"], ["both", "of", "them"], ["all", "of", "them"])


def _by_place(words: list[str], count: int) -> int | None:
    telling = [word for word in words if word.isalnum() and word not in _AROUND]
    if words == ["one"]:
        telling = words
    if len(telling) != 1:
        return None
    (word,) = telling
    number = small_number(word)
    place = number - 1 if number else _PLACES.get(word, count)
    place = count - 1 if place == -1 else place
    return place if place < count else None


def _by_name(utterance: Utterance, names: Sequence[tuple[str, str]]) -> int | None:
    """Return the index of the only option that a message names by label, value or distinctive word.

    Return None if no option or several options match.
    """
    said = " " + " ".join(utterance.words) + " "
    keys = [[key_of(name) for name in pair if name] for pair in names]
    labels = [set(" ".join(pair).split(" ")) for pair in keys]
    words = {word for word in utterance.words if word.isalnum() and word not in _AROUND}
    whole = [index for index, pair in enumerate(keys) if any(f" {key} " in said for key in pair)]
    shared = {word for one, two in combinations(labels, 2) for word in one & two}
    part = [index for index, label in enumerate(labels) if not (words & label).issubset(shared)]
    hits = whole if len(whole) == 1 else part
    return hits[0] if len(hits) == 1 and words <= labels[hits[0]] | _AROUND else None
