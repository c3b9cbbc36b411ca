"""The display frame: the data a policy hands over for display; one per flow (CO-3)."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.types import Json, JsonObject


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

    def serialize(self) -> JsonObject:
        """As JSON; shares its data with the frame."""
        return {
            "frame_id": self.frame_id,
            "flow_id": self.flow_id,
            "data": self.data,
            "display_type": self.display_type,
            "display_name": self.display_name,
            "source": self.source,
            "code": self.code,
            "chart_type": self.chart_type,
            "table_id": self.table_id,
            "rows": self.rows,
            "warning": self.warning,
            "error": self.error,
        }

    @classmethod
    def from_dict(cls, body: JsonObject) -> Frame:
        return cls(**body)
