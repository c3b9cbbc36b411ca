"""Table pages and exports that clients request outside turns.

A domain service provides the pages of tables that a frame doesn't contain completely (`domain.services.Paged`),
and the exports (`domain.services.Exporting`).
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from orchestrator.adapters.domains.folder import DomainRegistry, LoadedDomain, load_domain
from orchestrator.adapters.threads import run_in_thread
from orchestrator.dialogue.records import Frame
from orchestrator.dialogue.storage.serialization import load
from orchestrator.dialogue.tables import ShownTable
from orchestrator.domain.services import Exporting, Paged, ToolCall
from orchestrator.errors import FailureCategory, NotFound, ToolFailure, Unavailable
from orchestrator.turns.turn import SessionRecord
from orchestrator.types import JsonObject, TenantId

MakeServices: TypeAlias = Callable[[LoadedDomain], Callable[[TenantId], Mapping[str, object]]]


class FramePages:
    """A reader of frames' table pages and exports. Domains are loaded on first use."""

    def __init__(self, domains: DomainRegistry, make_services: MakeServices) -> None:
        self._domains = domains
        self._make_services = make_services
        self._loaded: dict[str, tuple[LoadedDomain, Callable[[TenantId], Mapping[str, object]]]] = {}
        self._loading = asyncio.Lock()

    async def page(self, session: SessionRecord, frame: JsonObject, number: int) -> JsonObject:
        """Return page `number` (from 1) of a frame's rows: ``{frame_id, page, pages, row_count, rows}``.

        Raises:
            NotFound: the frame has no rows, or its table or the page doesn't exist.
            Unavailable: the domain's service failed.
        """
        loaded, make = await self._load(session.domain)
        shown = load(Frame, frame)
        table = ShownTable.of(shown, loaded.domain.config.generation.page_rows)
        if table is None:
            raise NotFound("table", frame["frame_id"])
        if table.table_id is None:
            if not 1 <= number <= table.pages:
                raise _no_page(number)
            page = table.turn_to(number)
            counts = {"page": number, "pages": page.pages, "row_count": page.rows}
            return {"frame_id": page.frame_id, **counts, "rows": page.cut(frame["data"])}
        services = make(session.tenant_id).values()
        service = next((one for one in services if isinstance(one, Paged)), None)
        if service is None:
            raise NotFound("table", table.table_id)
        call = _make_call(f"page:{frame['frame_id']}:{number}", session)
        try:
            found = await service.page(table.table_id, number, call)
        except ToolFailure as failure:
            if failure.category is FailureCategory.NOT_FOUND:
                raise _no_page(number) from failure
            raise Unavailable(f"Could not read the table: {failure}") from failure
        members = ("page", "pages", "row_count", "rows")
        return {"frame_id": frame["frame_id"], **{name: found[name] for name in members}}

    async def export(self, session: SessionRecord, export_id: str) -> JsonObject:
        """Return a session's export: ``{name, format, text, key}``.

        Raises:
            NotFound: the export doesn't exist or belongs to another caller.
            Unavailable: the domain's service failed.
        """
        _, make = await self._load(session.domain)
        services = make(session.tenant_id).values()
        service = next((one for one in services if isinstance(one, Exporting)), None)
        if service is None:
            raise NotFound("export", export_id)
        call = _make_call(f"export:{export_id}", session)
        try:
            return await service.document(export_id, call)
        except ToolFailure as failure:
            if failure.category is FailureCategory.NOT_FOUND:
                raise NotFound("export", export_id) from failure
            raise Unavailable(f"Could not read the export: {failure}") from failure

    async def _load(self, domain: str) -> tuple[LoadedDomain, Callable[[TenantId], Mapping[str, object]]]:
        if domain not in self._loaded:
            async with self._loading:
                if domain not in self._loaded:
                    loaded = await run_in_thread(load_domain, self._domains.place(domain))
                    self._loaded[domain] = loaded, self._make_services(loaded)
        return self._loaded[domain]


def _make_call(key: str, session: SessionRecord) -> ToolCall:
    home = session.root or session.session_id
    return ToolCall(key, home, session.user_id, session.tenant_id, time.time())


def _no_page(number: int) -> NotFound:
    return NotFound("page", str(number))
