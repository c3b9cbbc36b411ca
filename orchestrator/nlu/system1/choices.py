"""Answers to a choice among displayed candidates: "the second one", "2", or the name of a candidate."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Source, Understanding
from orchestrator.nlu.actions import Action, react
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.numbers import NUMBERS, ORDINALS
from orchestrator.nlu.text import Utterance, key_of, word_set
from orchestrator.types import Dact

_PLACES = ORDINALS | NUMBERS | {"former": 0, "latter": -1}
_AROUND = word_set(
    "the one of option number please i want take i'd like choose pick go with let's that is it's ok okay yes"
)
_FEW_WORDS = 10


def choose(utterance: Utterance, context: NluContext, flows: Mapping[Dact, FlowSpec]) -> Understanding | None:
    """Interpret a message as an option of the open question, or return None unless exactly one option matches."""
    names = context.question.choices
    if not names or len(utterance.words) > _FEW_WORDS:
        return None
    labels = [key_of(label).split(" ") for label, *_ in names]
    shared = set(labels[0]).intersection(*labels)
    # In “stop the first one”, “stop” does not distinguish the options, because all of them stop something.
    index = _by_place([word for word in utterance.words if word not in shared], len(names))
    if index is None:
        index = _by_name(utterance, names)
    if index is None and _stops_all(utterance.words, shared, context):
        index = 0  # the words indicate that the other tasks are stopped too
    if index is None:
        index = _by_deed(utterance.words, [option.action_name for option in context.question.options])
    if index is None or ("?" in utterance.words and _names_deed(context, index)):
        return None
    chosen = react(Action("select_option", {"index": index}), context, flows)
    return replace(chosen, source=Source.SYSTEM1, text=utterance.text)


def _stops_all(words: Sequence[str], shared: Collection[str], context: NluContext) -> bool:
    """Return whether “both” or “stop both of them” answers the question about tasks to stop (FS-12)."""
    if any(option.action_name != "cancel_flow" for option in context.question.options):
        return False
    telling = [word for word in words if word.isalnum() and word not in shared]
    return telling in (["both"], ["both", "of", "them"], ["all", "of", "them"])


def _names_deed(context: NluContext, index: int) -> bool:
    """Return whether an option decides about a past action. The question "undo it?" itself is not a decision."""
    return index < len(context.question.options) and context.question.options[index].action_name in _DEEDS


def _by_place(words: list[str], count: int) -> int | None:
    telling = [word for word in words if word.isalnum() and word not in _AROUND]
    if not telling and "one" in words and len(words) == 1:
        return 0
    if len(telling) != 1:
        return None
    word = telling[0]
    place = _PLACES.get(word)
    if place is None and word.isdecimal() and len(word) < 3:
        place = int(word) - 1
        return place if 0 <= place < count else None
    if place is None:
        return None
    place = count - 1 if place == -1 else place
    return place if place < count else None


def _by_name(utterance: Utterance, names: Sequence[tuple[str, str]]) -> int | None:
    """Return the only option that matches the message by label, value or a distinctive word, or None."""
    said = " " + " ".join(utterance.words) + " "
    keys = [[key_of(name) for name in pair if name] for pair in names]
    labels = [set(" ".join(pair).split(" ")) for pair in keys]
    words = {word for word in utterance.words if word.isalnum() and word not in _AROUND}
    whole = [index for index, pair in enumerate(keys) if any(f" {key} " in said for key in pair)]
    part = [
        index for index, label in enumerate(labels) if any(_only(w, index, labels) for w in words & label)
    ]
    hits = whole if len(whole) == 1 else part
    return hits[0] if len(hits) == 1 and words <= labels[hits[0]] | _AROUND else None


def _by_deed(words: list[str], deeds: Sequence[str]) -> int | None:
    """Return the only option with the requested action, such as "keep it" or "undo that", or None."""
    telling = {word for word in words if word.isalpha() and word not in _AROUND and word not in _BETWEEN}
    asked = [
        index for index, deed in enumerate(deeds) if telling and telling <= _DEEDS.get(deed, frozenset())
    ]
    return asked[0] if asked else None


_DEEDS: Mapping[str, frozenset[str]] = {
    "keep_effect": word_set("keep leave stays stay nothing neither never mind nevermind forget no old first"),
    "compensate_effect": word_set("undo redo rebook change replace switch swap move correct instead new"),
    "repeat_effect": word_set("both keep also too additionally besides second another extra more add"),
}
"""Words of decisions about a past action (RT-12), by option action."""
_BETWEEN = word_set(
    "it a an my this your do then now thanks was booking booked flight one so just all right as"
)


def _only(word: str, index: int, labels: list[set[str]]) -> bool:
    return not any(word in label for other, label in enumerate(labels) if other != index)
