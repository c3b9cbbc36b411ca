"""The display frame: the data a policy hands over for display; one per flow (CO-3)."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.types import Json


@dataclass(slots=True)
class Frame:
    """`data` is an object, or a list of row objects (the first page only; `table_id` leads to the rest).

    `display_type`: table, chart, card, list, form, confirmation, toast. `chart_type`: ``auto`` lets the
    answer choose it by the data. `source`: the tools it came from.
    """

    frame_id: str
    flow_id: str
    data: Json
    display_type: str = "card"
    display_name: str = ""
    source: list[str] = field(default_factory=list[str])
    code: str | None = None
    chart_type: str | None = None
    table_id: str | None = None
    rows: int | None = None
    warning: str | None = None
    error: str | None = None
