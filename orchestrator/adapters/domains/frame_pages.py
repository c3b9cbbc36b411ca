"""Further rows of tables that frames show a part of: asked of the domain's own service, outside any turn.

A domain with tables of more than one page has a service with the method of `domain.services.Paged`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeAlias

from orchestrator.adapters.domains.folder import DomainRegistry, LoadedDomain, load_domain
from orchestrator.adapters.threads import run_in_thread
from orchestrator.dialogue.json_values import is_list
from orchestrator.domain.services import Paged, ToolCall
from orchestrator.errors import FailureCategory, NotFound, ToolFailure, Unavailable
from orchestrator.types import Json, JsonObject, SessionId, TenantId, UserId

PAGE_ROWS = 512
"""Rows of a page when the frame itself holds all of them."""

MakeServices: TypeAlias = Callable[[LoadedDomain], Callable[[TenantId], Mapping[str, object]]]


class FramePages:
    """Domains are loaded when their first page is asked for."""

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
        """Page `number` (from 1) of a frame's rows: ``{frame_id, page, pages, row_count, rows}``.

        Raises:
            NotFound: the frame has no rows, or no such page.
            Unavailable: the domain's service failed.
        """
        if frame["table_id"] is None:
            return {"frame_id": frame["frame_id"], **_slice(frame["data"], number)}
        service = await self._find(domain, tenant_id)
        call = ToolCall(f"page:{frame['frame_id']}:{number}", session_id, user_id, tenant_id, now)
        try:
            found = await service.page(frame["table_id"], number, call)
        except ToolFailure as failure:
            if failure.category is FailureCategory.NOT_FOUND:
                raise _no_page(number) from failure
            raise Unavailable(f"The table could not be read: {failure}") from failure
        members = ("page", "pages", "row_count", "rows")
        return {"frame_id": frame["frame_id"], **{name: found[name] for name in members}}

    async def _find(self, domain: str, tenant_id: TenantId) -> Paged:
        """The domain's service that knows pages. Raises NotFound when it has none."""
        if domain not in self._services:
            async with self._loading:
                if domain not in self._services:
                    loaded = await run_in_thread(load_domain, self._domains.place(domain))
                    self._services[domain] = self._make_services(loaded)
        for service in self._services[domain](tenant_id).values():
            if isinstance(service, Paged):
                return service
        raise NotFound("paged table of the domain", domain)


def _slice(data: Json, number: int) -> JsonObject:
    """A page of rows that the frame holds itself."""
    if not is_list(data):
        raise NotFound("page", "of a frame without rows")
    pages = max(1, -(-len(data) // PAGE_ROWS))
    if not 1 <= number <= pages:
        raise _no_page(number)
    shown = data[(number - 1) * PAGE_ROWS : number * PAGE_ROWS]
    return {"page": number, "pages": pages, "row_count": len(data), "rows": shown}


def _no_page(number: int) -> NotFound:
    return NotFound("page", str(number))
