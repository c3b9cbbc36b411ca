"""Further pages of frames' tables, and exports, requested from the domain's services outside any turn.

A domain whose tables exceed one page has a service that implements `domain.services.Paged`; one with exports
implements `Exporting`.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from orchestrator.adapters.domains.folder import DomainRegistry, LoadedDomain, load_domain
from orchestrator.adapters.threads import run_in_thread
from orchestrator.domain.services import Exporting, Paged, ToolCall
from orchestrator.errors import FailureCategory, NotFound, ToolFailure, Unavailable
from orchestrator.types import Json, JsonObject, SessionId, TenantId, UserId, is_list

PAGE_ROWS = 512
"""Rows per page when the frame itself contains all rows."""

MakeServices: TypeAlias = Callable[[LoadedDomain], Callable[[TenantId], Mapping[str, object]]]


class FramePages:
    """Pages and exports by domain. Domains are loaded on first use."""

    def __init__(self, domains: DomainRegistry, make_services: MakeServices) -> None:
        self._domains = domains
        self._make_services = make_services
        self._services: dict[str, Callable[[TenantId], Mapping[str, object]]] = {}
        self._loading = asyncio.Lock()

    async def page(
        self,
        frame: JsonObject,
        number: int,
        *,
        domain: str,
        tenant_id: TenantId,
        session_id: SessionId,
        user_id: UserId | None,
        now: float,
    ) -> JsonObject:
        """Return page `number` (from 1) of a frame's rows: ``{frame_id, page, pages, row_count, rows}``.

        Raises:
            NotFound: the frame has no rows, or the page doesn't exist.
            Unavailable: the domain's service failed.
        """
        if frame["table_id"] is None:
            return {"frame_id": frame["frame_id"], **_slice(frame["data"], number)}
        services = await self._services_of(domain, tenant_id)
        service = next((one for one in services if isinstance(one, Paged)), None)
        if service is None:
            raise NotFound("paged table of the domain", domain)
        call = ToolCall(f"page:{frame['frame_id']}:{number}", session_id, user_id, tenant_id, now)
        try:
            found = await service.page(frame["table_id"], number, call)
        except ToolFailure as failure:
            if failure.category is FailureCategory.NOT_FOUND:
                raise _no_page(number) from failure
            raise Unavailable(f"The table could not be read: {failure}") from failure
        members = ("page", "pages", "row_count", "rows")
        return {"frame_id": frame["frame_id"], **{name: found[name] for name in members}}

    async def export(
        self,
        export_id: str,
        *,
        domain: str,
        tenant_id: TenantId,
        session_id: SessionId,
        user_id: UserId | None,
        now: float,
    ) -> JsonObject:
        """Return an export of a session: ``{name, format, text, key}``.

        Raises:
            NotFound: the export doesn't exist or belongs to another caller.
            Unavailable: the domain's service failed.
        """
        services = await self._services_of(domain, tenant_id)
        service = next((one for one in services if isinstance(one, Exporting)), None)
        if service is None:
            raise NotFound("exports of the domain", domain)
        call = ToolCall(f"export:{export_id}", session_id, user_id, tenant_id, now)
        try:
            return await service.document(export_id, call)
        except ToolFailure as failure:
            if failure.category is FailureCategory.NOT_FOUND:
                raise NotFound("export", export_id) from failure
            raise Unavailable(f"The export could not be read: {failure}") from failure

    async def _services_of(self, domain: str, tenant_id: TenantId) -> Collection[object]:
        """Return the domain's services, loaded once."""
        if domain not in self._services:
            async with self._loading:
                if domain not in self._services:
                    loaded = await run_in_thread(load_domain, self._domains.place(domain))
                    self._services[domain] = self._make_services(loaded)
        return self._services[domain](tenant_id).values()


def _slice(data: Json, number: int) -> JsonObject:
    """Return a page of the rows that the frame itself contains."""
    if not is_list(data):
        raise NotFound("page", "of a frame without rows")
    pages = max(1, -(-len(data) // PAGE_ROWS))
    if not 1 <= number <= pages:
        raise _no_page(number)
    shown = data[(number - 1) * PAGE_ROWS : number * PAGE_ROWS]
    return {"page": number, "pages": pages, "row_count": len(data), "rows": shown}


def _no_page(number: int) -> NotFound:
    return NotFound("page", str(number))
