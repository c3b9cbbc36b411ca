"""Visual output: frames with blocks, pages and notes (RS-5).

A block describes how to show the frame's `data`. Only cards repeat values from the data. Data that does not fit the
intended form is shown in a simpler form, with a note.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import chain

from orchestrator.context import TurnContext
from orchestrator.dialogue.questions import Level
from orchestrator.dialogue.records import Frame
from orchestrator.dialogue.storage.serialization import dump
from orchestrator.dialogue.tables import ShownTable
from orchestrator.res.charts import Drawn, draw
from orchestrator.res.languages import word
from orchestrator.res.markup import to_plain
from orchestrator.res.response import Response
from orchestrator.res.templates import Templates
from orchestrator.res.wording import name_slot, show_slot
from orchestrator.saying import Saying, Told, say
from orchestrator.types import FlowId, Json, JsonObject, ToolId, are_rows, is_list, is_object

LOOKED_AT = 20
"""Number of rows used to infer columns and their types."""
MOST_ITEMS = 40
"""Maximum number of facts on a card."""


class BlockType(StrEnum):
    TABLE = "table"
    CHART = "chart"
    CARD = "card"
    LIST = "list"
    FORM = "form"
    CONFIRMATION = "confirmation"
    TOAST = "toast"


async def display(response: Response) -> None:
    """Add the frames with this turn's results to the answer, in order, and the requested page of a table."""
    context = response.context
    for frame in context.changes.frames.values():
        if isinstance(frame.warning, Saying):
            frame.warning = response.templates.label(frame.warning)
    for flow in context.changes.reported:
        if flow.flow_id in context.changes.frames:
            frame = degrade(context.changes.frames[flow.flow_id], response.templates)
            block = {
                "type": frame.display_type,
                "title": frame.display_name,
                "note": frame.warning,
                **_BLOCKS[BlockType(frame.display_type)](frame, context),
            }
            response.answer.frames.append({**dump(frame), "block": block})
    if context.changes.page is not None:
        response.answer.frames.append(_show_page(*context.changes.page, context))


def _show_page(table: ShownTable, rows: list[JsonObject], context: TurnContext) -> JsonObject:
    """Return another page of a frame's table. The stored frame keeps its first page."""
    frame = Frame(
        *(table.frame_id, table.flow_id, rows, "table", table.title, table.source),
        table_id=table.table_id,
        rows=table.rows,
    )
    block = {"type": "table", "title": table.title, "note": None, **_make_table(frame, table, context)}
    return {**dump(frame), "block": block}


def degrade(frame: Frame, templates: Templates) -> Frame:
    """Return the frame if it can be shown as intended; otherwise, return a simpler frame with a note.

    A chart's data becomes its Vega-Lite specification.
    """
    if frame.display_type == BlockType.CHART:
        drawn = draw(frame.data, frame.display_name, frame.chart_type)
        if isinstance(drawn, Drawn):
            return replace(frame, data=drawn.spec, chart_type=drawn.chart_type)
        return _simplify(frame, templates, drawn.why, chart=True)
    if frame.display_type not in _FITS:
        return _simplify(frame, templates, say("unknown_display", display=frame.display_type))
    if not _FITS[BlockType(frame.display_type)](frame.data):
        return _simplify(frame, templates, say("not_of_display", display=frame.display_type))
    return frame


def _simplify(frame: Frame, templates: Templates, why: Told, *, chart: bool = False) -> Frame:
    rows = are_rows(frame.data)
    kind = BlockType.TABLE if rows else BlockType.LIST if is_list(frame.data) else BlockType.CARD
    note = to_plain(templates.render("chart_degraded" if chart else "degraded_display", why=why))
    return replace(
        frame,
        display_type=kind.value,
        chart_type=None,
        rows=len(frame.data) if rows and frame.rows is None else frame.rows,
        warning=note if frame.warning is None else f"{frame.warning} {note}",
    )


# Each of these functions returns the part of a block that is specific to the block's type.


def _table(frame: Frame, context: TurnContext) -> JsonObject:
    table = ShownTable.of(frame, context.world.domain.config.generation.page_rows)
    assert table is not None, "a frame that isn't a table is shown in a simpler form"
    return _make_table(frame, table, context)


def _make_table(frame: Frame, table: ShownTable, context: TurnContext) -> JsonObject:
    rows: list[JsonObject] = frame.data
    around = ((word("previous_page"), table.page - 1), (word("next_page"), table.page + 1))
    return {
        "columns": _read_columns(rows, _read_fields(frame.source, context)),
        "rows": max(frame.rows or 0, table.rows),
        "page": table.page,
        "pages": table.pages,
        "page_rows": table.page_rows,
        "table_id": frame.table_id,
        "actions": [_page_action(frame, label, at) for label, at in around if 1 <= at <= table.pages],
    }


def list_rows(rows: list[JsonObject], source: Iterable[str], context: TurnContext) -> list[str]:
    """Return rows from the tools in `source` as text, without hidden columns or empty values."""
    columns = _read_columns(rows, _read_fields(source, context))
    names = [column["name"] for column in columns]
    return [", ".join(str(row[name]) for name in names if row.get(name) is not None) for row in rows]


def _page_action(frame: Frame, label: str, page: int) -> JsonObject:
    """Return an action that makes the client read ``/v1/sessions/{id}/frames/{frame_id}/page/{page}``."""
    payload = {"frame_id": frame.frame_id, "table_id": frame.table_id, "page": page}
    return {"label": label, "name": "show_page", "payload": payload}


def _read_columns(rows: list[JsonObject], fields: Mapping[str, JsonObject]) -> list[JsonObject]:
    names = dict.fromkeys(chain.from_iterable(rows[:LOOKED_AT]))
    return [
        {
            "name": name,
            "label": _label(name, fields),
            "type": _kind_of([row.get(name) for row in rows[:LOOKED_AT]]),
        }
        for name in names
        if not fields.get(name, {}).get("x-hidden")
    ]


def _read_fields(source: Iterable[str], context: TurnContext) -> Mapping[str, JsonObject]:
    """Return the field declarations of the tools in `source`. Earlier tools take precedence."""
    tools = context.world.domain.tools
    declared = [tools[ToolId(one)].fields for one in source if one in tools]
    return declared[0] if len(declared) == 1 else ChainMap(*declared)


def _label(name: str, fields: Mapping[str, JsonObject]) -> str:
    declared = fields.get(name, {})
    label, unit = declared.get("title") or name_slot(name), declared.get("x-unit")
    return f"{label} ({unit})" if unit else str(label)


def _kind_of(values: list[Json]) -> str:
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {bool}:
        return "boolean"
    numbers = kinds and bool not in kinds and all(issubclass(kind, (int, float)) for kind in kinds)
    return "number" if numbers else "text"


def _chart(frame: Frame, context: TurnContext) -> JsonObject:
    del context
    return {"language": "vega-lite", "chart_type": frame.chart_type}


def _card(frame: Frame, context: TurnContext) -> JsonObject:
    """Return a card's labeled facts, without nested or hidden values."""
    flow = next(flow for flow in context.changes.reported if flow.flow_id == frame.flow_id)
    facts = frame.data if is_object(frame.data) else {"value": frame.data}
    fields = _read_fields(frame.source, context)
    return {
        "items": [
            {
                "name": name,
                "label": _label(name, fields),
                "value": show_slot(value, flow.slot(name), context.world.registry, context.local_now),
            }
            for name, value in facts.items()
            if value is not None and not isinstance(value, (dict, list))
            if not fields.get(name, {}).get("x-hidden")
        ][:MOST_ITEMS]
    }


def _plain(frame: Frame, context: TurnContext) -> JsonObject:
    del frame, context
    return {}


def _form(frame: Frame, context: TurnContext) -> JsonObject:
    """Return the submit action for a policy's form. The frame's data contains the fields."""
    del context
    submit = {"label": word("send"), "name": "fill_form", "payload": {"flow_id": frame.flow_id}}
    return {"actions": [submit]}


def _confirmation(frame: Frame, context: TurnContext) -> JsonObject:
    payload: JsonObject = {"flow_id": frame.flow_id}
    asked = context.state.ambiguity.find(level=Level.CONFIRMATION, flow_id=FlowId(frame.flow_id), slot=None)
    if asked is not None and asked.about.fingerprint is not None:
        payload["candidate"] = asked.about.fingerprint
    actions = [
        {"label": word("yes"), "name": "confirm", "payload": payload},
        {"label": word("no"), "name": "deny", "payload": payload},
    ]
    return {**_card(frame, context), "actions": actions}


_BLOCKS: Mapping[BlockType, Callable[[Frame, TurnContext], JsonObject]] = {
    BlockType.TABLE: _table,
    BlockType.CHART: _chart,
    BlockType.CARD: _card,
    BlockType.LIST: _plain,
    BlockType.FORM: _form,
    BlockType.CONFIRMATION: _confirmation,
    BlockType.TOAST: _card,
}


def _is_one_thing(data: Json) -> bool:
    return data is not None and not is_list(data)


_FITS: Mapping[str, Callable[[Json], bool]] = {
    BlockType.TABLE: are_rows,
    BlockType.CARD: _is_one_thing,
    BlockType.LIST: is_list,
    BlockType.FORM: are_rows,
    BlockType.CONFIRMATION: _is_one_thing,
    BlockType.TOAST: _is_one_thing,
}


def show_code(frame: JsonObject | None) -> JsonObject | None:
    """Return a frame's code and its language, or None if it has no code."""
    code = frame.get("code") if frame is not None else None
    if not code:
        return None
    first = code.lstrip().partition(" ")[0].casefold()
    language = "sql" if first in {"select", "with", "from"} else "python"
    return {"language": language, "code": code}
