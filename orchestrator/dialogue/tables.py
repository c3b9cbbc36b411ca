from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from orchestrator.dialogue.records import Frame
from orchestrator.types import JsonObject, are_rows


@dataclass(frozen=True, slots=True)
class ShownTable:
    """The table displayed last and its current page.

    `table_id`: ID for fetching more pages from the domain's service, or None if the frame has all rows.
    `source`: the tools that returned the rows. `rows`: total number of rows. `page_rows`: number of rows per
    page. `page`: page number, starting at 1.
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
        """Return the first page of a frame, or None if the frame isn't a table.

        `page_rows`: number of rows per page. If the domain's service has more pages, the length of the first page
        is used instead.
        """
        if frame.display_type != "table" or not are_rows(frame.data):
            return None
        own = len(frame.data)
        total = max(frame.rows or 0, own)
        is_served = frame.table_id is not None and total > own
        return cls(
            frame.frame_id,
            frame.flow_id,
            frame.display_name,
            frame.source,
            frame.table_id if is_served else None,
            total if is_served else own,
            (own or page_rows) if is_served else page_rows,
        )

    @property
    def pages(self) -> int:
        return max(1, -(-self.rows // self.page_rows))

    @property
    def first(self) -> int:
        """Return the number of this page's first row, starting at 1."""
        return (self.page - 1) * self.page_rows + 1

    @property
    def last(self) -> int:
        return min(self.page * self.page_rows, self.rows)

    def turn_to(self, page: int) -> ShownTable:
        return replace(self, page=page)

    def cut(self, rows: Sequence[JsonObject]) -> list[JsonObject]:
        return list(rows[self.first - 1 : self.last])
