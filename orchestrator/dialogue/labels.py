"""Labels on what a session has taken in, and from where: they stay with it across turns and tools (PX-3).

They only grow. What they forbid is decided in PEX.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

MOST_SOURCES = 8
"""Of one label; the first ones are kept, for they were there when the later ones came."""


class Label(StrEnum):
    PRIVATE = "private"
    """Private data were read."""
    UNTRUSTED = "untrusted"
    """Text was taken in that somebody outside may have written."""


@dataclass(frozen=True, slots=True)
class LabelSource:
    """`source`: in words for the user, e.g. a tool's name. `turn`: the number of the turn."""

    label: Label
    source: str
    turn: int
    flow_id: str | None = None


def add_source(sources: list[LabelSource], new: LabelSource) -> None:
    """Note where a label came from; each source once."""
    of_label = [known for known in sources if known.label is new.label]
    if len(of_label) < MOST_SOURCES and all(known.source != new.source for known in of_label):
        sources.append(new)


def labels_of(sources: Iterable[LabelSource]) -> frozenset[Label]:
    return frozenset(known.label for known in sources)
