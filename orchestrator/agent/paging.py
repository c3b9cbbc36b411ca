from orchestrator.agent.modules import Modules
from orchestrator.context import TurnContext
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.tables import ShownTable
from orchestrator.domain.services import Paged, ToolCall
from orchestrator.errors import NotFound, ToolFailure
from orchestrator.types import Json, JsonObject, are_rows

STEP = "page"
"""The kind of journal steps that read a page."""


async def show_page(context: TurnContext, modules: Modules, wanted: str | None) -> None:
    """Show a page of the most recently displayed table, or report that the page is not available.

    `wanted`: first, last, previous or a number. Default: the next page.
    """
    table = context.state.table
    if table is None:
        context.tell(NoticeKind.NO_PAGE, page=None, pages=0, at=0, lost=False)
        return
    number = _find_number(table, wanted)
    missing: JsonObject = {"page": number, "pages": table.pages, "at": table.page}
    if not 1 <= number <= table.pages:
        context.tell(NoticeKind.NO_PAGE, **missing, lost=False)
        return
    page = table.turn_to(number)
    try:
        rows = await _read(context, modules, page)
    except (NotFound, ToolFailure) as error:
        context.log.failed_check("agent", "page", str(error))
        context.tell(NoticeKind.NO_PAGE, **missing, lost=True)
        return
    context.state.note_table(page)
    context.changes.page = page, rows
    context.tell(
        NoticeKind.PAGE,
        title=page.title,
        first=page.first,
        last=page.last,
        rows=page.rows,
        page=page.page,
        pages=page.pages,
    )


def _find_number(table: ShownTable, wanted: str | None) -> int:
    if wanted is not None and wanted.isdecimal():
        return int(wanted)
    places = {"first": 1, "last": table.pages, "previous": table.page - 1}
    return places.get(wanted or "", table.page + 1)


async def _read(context: TurnContext, modules: Modules, page: ShownTable) -> list[JsonObject]:
    """Return the rows of a page. A retried turn reads the rows from its journal.

    Raises NotFound if the page no longer exists, or ToolFailure if the domain's service fails.
    """
    journal, key = context.journal, f"{STEP}:{page.frame_id}:{page.page}"

    async def read(idempotency_key: str) -> Json:
        if page.table_id is None:
            return await _read_frame(context, modules, page)
        return await _read_service(context, modules, page, idempotency_key)

    request = {"frame_id": page.frame_id, "page": page.page}
    rows = await journal.call(key, STEP, request, read, idempotent=True)
    return rows if are_rows(rows) else []


async def _read_frame(context: TurnContext, modules: Modules, page: ShownTable) -> Json:
    frames, ids = modules.ports.frames, context.ids
    if frames is None:
        raise NotFound("frame", page.frame_id)
    frame = await frames.frame(ids.tenant_id, ids.session_id, page.frame_id)
    return page.cut(frame["data"])


async def _read_service(
    context: TurnContext, modules: Modules, page: ShownTable, idempotency_key: str
) -> Json:
    ids = context.ids
    service = next((one for one in modules.services(ids.tenant_id).values() if isinstance(one, Paged)), None)
    if service is None or page.table_id is None:
        raise NotFound("table", page.table_id or "")
    call = ToolCall(idempotency_key, ids.session_id, ids.user_id, ids.tenant_id, context.now, root=ids.root)
    return (await service.page(page.table_id, page.page, call))["rows"]
