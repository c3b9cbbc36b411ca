"""Labels on what a session has taken in, and from where: they stay with it across turns and tools (PX-3).

They only grow, and a session that steps back keeps them. What they forbid is decided before each call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from orchestrator.types import JsonObject

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


def keep_labels(wanted: JsonObject, present: JsonObject) -> JsonObject:
    """Give an earlier stored state the labels of the present one: what was taken in is still in the scratchpad."""
    labels = [_read(source) for source in wanted.get("labels", ())]
    for source in present.get("labels", ()):
        add_source(labels, _read(source))
    return {**wanted, "labels": [asdict(source) for source in labels]} if labels else wanted


def _read(body: JsonObject) -> LabelSource:
    return LabelSource(Label(body["label"]), body["source"], body["turn"], body["flow_id"])
