"""Expected results of messages sent under `understand` during a turn, checked against store, calls and answers (RT-5).

The table of `docs/interruptions.md` gives the result by kind of message and by progress of the turn. The running turn
sends a parcel to Bob: it counts letters, which has no side effects, prints a label, and sends the parcel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from orchestrator.turns.turn import TurnRecord, TurnStatus

ASK = "send a parcel to Bob"
SAID: Mapping[str, tuple[str, ...]] = {
    "correction": ("no, to Ann", "to Ann instead", "sorry, I meant Ann", "Bob is wrong, it is Ann"),
    "cancellation": ("never mind", "cancel that", "forget it", "no", "wait, don't"),
    "second task": ("read the web page", "list the salaries"),
    "question": ("what can you do?", "help"),
    "thanks": ("thanks", "thank you"),
    "yes": ("yes", "yes please"),
    "unknown": ("please hurry", "hm, well", "bananas"),
}
EFFECTS = {"label": "Print a label", "parcel": "Send a parcel"}
"""The running turn's calls with side effects, in order, and their names for users."""
DONE_TWICE = "{} was done for {} {} times"


@dataclass(frozen=True)
class Outcome:
    """The result of an interruption.

    Args:
        begun: when each effect of the first turn was recorded as started.
        calls: the calls of the external system, with their recipients.
    """

    kind: str
    first: TurnRecord
    second: TurnRecord
    begun: Mapping[str, datetime]
    calls: Counter[tuple[str, str]]

    @property
    def in_time(self) -> str:
        """Return which effects the second turn could still prevent when it was accepted: all, some or none."""
        assert self.second.accepted_at is not None
        early = [name for name, at in self.begun.items() if at < self.second.accepted_at]
        return {0: "all", len(EFFECTS): "none"}.get(len(early), "some")


def find_faults(outcome: Outcome) -> list[str]:
    """Return the deviations from the table."""
    first, second = outcome.first, outcome.second
    faults = [DONE_TWICE.format(*call, times) for call, times in _by_call(outcome.calls) if times > 1]
    expected = _expect(outcome)
    if set(outcome.calls) != expected:
        faults.append(f"was done: {sorted(outcome.calls)}, expected: {sorted(expected)}")
    stops = outcome.kind in {"correction", "cancellation"} and outcome.in_time != "none"
    wanted = TurnStatus.CANCELLED if stops else TurnStatus.DONE
    if first.status is not wanted:
        faults.append(f"the first turn is {first.status}, expected: {wanted}")
    if second.status is not TurnStatus.DONE:
        faults.append(f"the second turn is {second.status}")
    replies = [_reply(first), _reply(second)]
    named = EFFECTS["label"]
    if stops and (named in replies[0]) != (outcome.in_time == "some"):
        faults.append(f"of what was done the first turn told: {replies[0]!r}")
    words = WORDS[outcome.kind]
    if not any(word in replies[1] for word in words.get(outcome.in_time, words.get("", ()))):
        faults.append(f"the second turn told: {replies[1]!r}")
    if (second.epoch or 0) <= (first.epoch or 0):
        faults.append("the turns were not committed in their order")
    return faults


WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "correction": {
        "all": ("changed the recipient from Bob to Ann",),
        "some": ("What should I do now?",),
        "none": ("What should I do now?",),
    },
    "cancellation": {
        "all": ("I've stopped sending a parcel.",),
        "some": ("I've already done this: Print a label, and I've left that as it is.",),
        "none": ("There's nothing to stop", "I don't have an open question"),
    },
    "second task": {"": ("text:", "I found", "recipient: Ann")},
    "question": {"": ("Here's what I can help you with",)},
    "thanks": {"": ("You're welcome", "Hello")},
    "yes": {"": ("have an open question",)},
    "unknown": {"": ("have an open question", "not sure what you mean")},
}
"""Possible replies of the second turn, by kind and by `in_time`."""


def _expect(outcome: Outcome) -> set[tuple[str, str]]:
    """Return the expected calls."""
    if outcome.kind == "correction" and outcome.in_time == "all":
        return {(name, "ann") for name in EFFECTS}
    if outcome.kind not in {"correction", "cancellation"} or outcome.in_time == "none":
        return {(name, "bob") for name in EFFECTS}
    return {("label", "bob")} if outcome.in_time == "some" else set()


def _by_call(calls: Counter[tuple[str, str]]) -> list[tuple[tuple[str, str], int]]:
    return sorted(calls.items())


def _reply(turn: TurnRecord) -> str:
    return turn.result["reply"] if turn.result else ""
