"""Display a turn: text, tables, cards, forms and numbered suggestions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from parley.terminal.conversation import Turn, answer_of
from parley.terminal.words import clean, plain, takes_numbers

MOST_ROWS = 20
MOST_COLUMNS = 10
LONGEST_CELL = 40


def show_turn(console: Console, turn: Turn) -> None:
    console.print(Text(f"Parley: {plain(answer_of(turn))}"))
    for part in show_frame(turn):
        console.print(part)
    for part in show_replies(turn):
        console.print(part)


def show_frame(turn: Turn) -> Iterator[RenderableType]:
    """Render each of the turn's frames, unless the reply already contains its content."""
    for frame in turn.get("frames") or []:
        shown = _BLOCKS.get(frame["block"]["type"])
        if shown is not None:
            yield from shown(frame, frame["block"], turn)


def _show_table(frame: Turn, block: Turn, turn: Turn) -> Iterator[RenderableType]:
    rows: list[Turn] = frame["data"]
    if block["rows"] <= _count_listed(turn):
        return
    yield make_table(block["columns"], rows, title=clean(block["title"]))
    if block["rows"] > min(len(rows), MOST_ROWS):
        more = f", page {block['page']} of {block['pages']}: /page N" if block["pages"] > 1 else ""
        yield Text(f"{min(len(rows), MOST_ROWS)} of {block['rows']:,} rows{more}", style="dim")


def _count_listed(turn: Turn) -> int:
    lines = (turn.get("reply") or "").split("\n")
    return sum(1 for line in lines if line.startswith("- ") or line.partition(". ")[0].isdigit())


def make_table(columns: list[Turn], rows: list[Turn], *, title: str = "") -> Table:
    table = Table(
        title=Text(title) if title else None, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left"
    )
    shown = columns[:MOST_COLUMNS]
    for column in shown:
        table.add_column(
            Text(clean(column["label"])), justify="right" if column["type"] == "number" else "left"
        )
    for row in rows[:MOST_ROWS]:
        table.add_row(*(Text(_cell(row.get(column["name"]))) for column in shown))
    return table


def _cell(value: Any) -> str:
    text = clean(value)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def _show_chart(frame: Turn, block: Turn, turn: Turn) -> Iterator[RenderableType]:
    del frame, turn
    yield Text(
        f"({clean(block['title'])}: a {clean(block['chart_type'])} chart, shown in the inspector)",
        style="dim",
    )


def _show_card(frame: Turn, block: Turn, turn: Turn) -> Iterator[RenderableType]:
    """Render the card's items that the reply doesn't contain, if there are at least two."""
    del frame
    said = plain(turn.get("reply") or "")
    items = [item for item in block["items"] if clean(item["value"]) not in said]
    if len(items) < 2:
        return
    grid = Table.grid(padding=(0, 2))
    for item in items:
        grid.add_row(Text(clean(item["label"]), style="dim"), Text(_cell(item["value"])))
    yield Panel(grid, title=Text(clean(block["title"])), title_align="left", expand=False)


def _show_list(frame: Turn, block: Turn, turn: Turn) -> Iterator[RenderableType]:
    del block
    items = frame["data"]
    if len(items) > _count_listed(turn):
        yield Text("\n".join(f"• {_cell(_name_of(item))}" for item in items[:MOST_ROWS]))


def _name_of(item: Any) -> Any:
    return ", ".join(clean(value) for value in item.values()) if isinstance(item, dict) else item


_BLOCKS: Mapping[str, Callable[[Turn, Turn, Turn], Iterator[RenderableType]]] = {
    "table": _show_table,
    "chart": _show_chart,
    "card": _show_card,
    "confirmation": _show_card,
    "toast": _show_card,
    "list": _show_list,
}


def show_replies(turn: Turn) -> Iterator[RenderableType]:
    interaction = turn.get("interaction") or {}
    if interaction.get("kind") == "form":
        names = ", ".join(clean(field["label"]) for field in interaction["fields"])
        yield Text(f"Still needed: {names}", style="dim")
    actions = turn.get("actions") or []
    if actions:
        slash = "" if takes_numbers(turn) else "/"
        labels = (
            f"[{slash}{number}] {clean(action['label'])}" for number, action in enumerate(actions, start=1)
        )
        yield Text("  ".join(labels), style="cyan")
