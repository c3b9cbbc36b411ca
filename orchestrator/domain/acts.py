"""Primitive acts, each with a hexadecimal digit. A flow's code, the dax, consists of its acts' digits (FS-5).

Flows that share acts are related. Rerouting prefers related flows. By default, a flow's edge flows are up to three
lookups that share at least two acts with it. A dax is never displayed to users.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.dialogue.specification import Family

MOST_OF_FLOW = 3
"""Maximum number of acts per flow."""
DIGITS = "0123456789ABCDEF"


@dataclass(frozen=True, slots=True)
class Act:
    """A primitive act. `words`: verbs that, like the name, indicate the act when a dax is proposed."""

    name: str
    words: frozenset[str] = frozenset()


_WORDS = {
    "talk": "greet chat tell say",
    "find": "search look list show check get ask answer query see where which what track read open",
    "compare": "advise recommend suggest rank best",
    "plan": "organize arrange",
    "create": "book make order buy register new draw reserve apply start rent borrow lend",
    "change": "modify move update edit rename reschedule extend renew set",
    "remove": "cancel delete drop forget stop clear return",
    "add": "append attach insert put include extra",
    "choose": "select pick seat",
    "schedule": "remind watch later reminder alarm notify",
    "remember": "save store keep note record recall preference preferences",
    "pay": "refund charge transfer donate donation invoice price",
    "send": "mail email report share export post deliver",
    "compute": "count calculate chart sum average convert",
    "approve": "confirm accept sign authorize",
    "maintain": "tidy clean summarize promote distil embed",
}
SHARED: Mapping[str, Act] = {
    digit: Act(name, frozenset(words.split()))
    for digit, (name, words) in zip(DIGITS, _WORDS.items(), strict=True)
}
"""Acts by digit, for domains that don't declare acts."""

_OF_FAMILY: Mapping[Family, str] = {
    Family.READ: "find",
    Family.PREPARE: "create",
    Family.TRANSFORM: "change",
    Family.SCHEDULE: "schedule",
    Family.PLAN: "plan",
    Family.CONVERSE: "talk",
    Family.INTERNAL: "maintain",
}
"""Names of default acts by family, for flows whose name and description contain no act."""


def propose_dax(
    acts: Mapping[str, Act], family: Family, name: Iterable[str], description: Iterable[str]
) -> str:
    """Propose a dax for a flow that declares none, based on the acts in its name and description.

    Acts in the name come first. If no act is found, use the family's act, or the first act in `acts` if the
    family's act is missing.
    """
    found: list[str] = []
    for words in ([*name], [*description]):
        for word in words:
            found += [
                digit
                for digit, act in acts.items()
                if digit not in found and (word == act.name or word in act.words)
            ]
    if not found:
        names = {act.name: digit for digit, act in acts.items()}
        found = [names.get(_OF_FAMILY[family], next(iter(acts)))]
    named = sorted(found[:MOST_OF_FLOW], key="0".__eq__)  # a leading zero would not count as an act
    return write_dax("".join(named))


def write_dax(digits: str) -> str:
    """Return the dax for up to three acts' digits, padded with leading zeros."""
    return digits.upper().rjust(MOST_OF_FLOW, "0")


def read_acts(dax: str) -> str:
    """Return a dax's digits without leading zeros, or “0” for “000”."""
    return dax.lstrip("0") or dax[:1]


def count_shared(dax: str, other: str) -> int:
    return len(set(read_acts(dax)) & set(read_acts(other)))
