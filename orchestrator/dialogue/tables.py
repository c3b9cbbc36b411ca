"""The table displayed last, by which users ask for its other pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from orchestrator.dialogue.records import Frame
from orchestrator.types import JsonObject, are_rows


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table and the page of it that was displayed last.

    `table_id`: the table in the domain's service, which has its further pages, or None if the frame has all
    rows. `source`: the tools that returned the rows. `rows`: in all. `page`: from 1.
    """

    frame_id: str
    flow_id: str
    title: str = ""
    source: list[str] = field(default_factory=list[str])
    table_id: str | None = None
    rows: int = 0
    page_rows: int = 1
    page: int = 1

    @classmethod
    def of(cls, frame: Frame, page_rows: int) -> ShownTable | None:
        """Return the first page of a frame, or None if it isn't a table.

        `page_rows`: rows per page; if only the domain's service has all rows, its pages are as long as the first.
        """
        if frame.display_type != "table" or not are_rows(frame.data):
            return None
        own = len(frame.data)
        total = max(frame.rows or 0, own)
        is_served = frame.table_id is not None and total > own > 0
        return cls(
            frame.frame_id,
            frame.flow_id,
            frame.display_name,
            frame.source,
            frame.table_id if is_served else None,
            total if is_served else own,
            own if is_served else page_rows,
        )

    @property
    def pages(self) -> int:
        return max(1, -(-self.rows // self.page_rows))

    @property
    def first(self) -> int:
        """Return the number, from 1, of the first row of this page."""
        return (self.page - 1) * self.page_rows + 1

    @property
    def last(self) -> int:
        """Return the number of the last row of this page."""
        return min(self.page * self.page_rows, self.rows)

    def turn_to(self, page: int) -> ShownTable:
        return replace(self, page=page)

    def cut(self, rows: Sequence[JsonObject]) -> list[JsonObject]:
        """Return this page's part of all rows."""
        return list(rows[self.first - 1 : self.last])
