"""Split messages into requests, and collect request verbs."""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import MessageKind, Understanding
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.text import tokenize, word_set

_PARTS = re.compile(
    r",? and then |,? then |; ?|\. |,? and (?:also|after that|afterwards) |,? (?:after that|afterwards),? ",
    re.IGNORECASE,
)
_JOINED = re.compile(r",? and (?:please )?|, (?:please )?", re.IGNORECASE)
"""Separators of values. If the first word of a request follows, they separate two requests."""
_AFTER_STATEMENT = re.compile(r",? (?:and|but|so) (?:please )?", re.IGNORECASE)
UNDOING = word_set("cancel undo delete refund revoke")
REPEATING = word_set("same another again")
POLITE_WORDS = word_set("""
    please plz pls thx thanks thank hi hello hey dear well great nice lovely quick quickly today now soon asap really
    just maybe perhaps possible possibly kindly love like want need look looking trip time moment favour favor bit
    different other new lot friend wife husband partner girlfriend boyfriend kid kids child children family colleague
    colleagues mother father sister brother son daughter friends people persons person place thing week weekend day
    night morning evening afternoon boss client customer team
""")


def find_partings(text: str) -> list[tuple[int, int]]:
    """Return the spans of the words that can separate a statement from a request after it, in text order."""
    return sorted(one.span() for pattern in (_PARTS, _AFTER_STATEMENT) for one in pattern.finditer(text))


def split_request(
    text: str, flows: Iterable[FlowSpec], values: Collection[tuple[int, int]] = ()
) -> tuple[str, str, bool] | None:
    """Split a message into its first request and the rest, or return None for a single request.

    The third item is True if the words between the two parts can only separate requests. `flows`: flows that
    users can request. `values`: spans of known values, such as “Dr. Hale”, which aren't split.
    """
    verbs = request_verbs(flows)
    for parting, is_certain in ((_PARTS, True), (_JOINED, False)):
        for found in parting.finditer(text):
            first, rest = text[: found.start()].strip(), text[found.end() :].strip()
            if any(start < found.end() and found.start() < end for start, end in values):
                continue
            asks = rest.partition(" ")[0].lower() in verbs and not verbs.isdisjoint(tokenize(first).words)
            if first and rest and (is_certain or asks):
                return first, rest, is_certain
    return None


def are_two_requests(
    begun: Understanding, other: Understanding, context: NluContext, *, is_certain: bool
) -> bool:
    """Return whether two parts of a message are requests to run one after the other.

    A part about the running task can precede another task: "stop, then show my bookings".
    """
    if other.kind is MessageKind.CANCELLATION:
        return (
            is_certain and begun.kind is MessageKind.TASK
        )  # "… and then cancel it": the assistant asks about the cancellation later
    if other.kind is not MessageKind.TASK:
        return False
    if begun.kind in {MessageKind.CORRECTION, MessageKind.CANCELLATION}:
        return is_certain and (context.active is None or other.flows[0].dact != context.active.dact)
    same = begun.kind is MessageKind.TASK and begun.flows[0].dact == other.flows[0].dact
    return begun.kind is MessageKind.TASK and (is_certain or not same or bool(other.slots))


def request_verbs(flows: Iterable[FlowSpec]) -> set[str]:
    """Return the first words of the flows' examples, without stop words or polite words."""
    return {word for flow in flows for word in _first_words(flow.examples)}


@lru_cache(maxsize=256)
def _first_words(examples: tuple[str, ...]) -> frozenset[str]:
    begun = {example.split()[0].lower() for example in examples if example}
    return frozenset(word for word in begun if word.isalpha()) - STOP_WORDS - POLITE_WORDS
