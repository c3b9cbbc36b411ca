"""Why a measure changed from one month to the next: how much, who took part, and whether it always does so.

What is found are facts of the table, the most telling first; causes outside of it are nobody's here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from domains.analytics.statements.conditions import MONTHS
from domains.analytics.statements.measures import measure_of, number_of, phrase_of, time_of
from domains.analytics.statements.parts import Values, quote
from domains.analytics.store.sheet import Sheet
from domains.analytics.store.workspace import TableService, Workspace
from domains.analytics.tools.display import about, describe_rows, show_value
from orchestrator.domain.services import FailureCategory, ToolCall, ToolFailure
from orchestrator.types import Json, JsonObject

MONTHS_BEFORE, MONTHS_AFTER = 9, 6
"""How much of the time around a change is drawn."""
MOST_GROUPS, MOST_OTHERS = 12, 8
LARGE, TRIFLE = 2.0, 0.5
"""In usual changes from month to month."""
OFTEN, SELDOM, ENOUGH_YEARS = 0.7, 0.3, 4


@dataclass(frozen=True, slots=True)
class Move:
    """A measure in two months that follow each other. `name`: of whom or what."""

    name: str
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def verb(self) -> str:
        if self.change == 0:
            return "stayed the same"
        return "fell" if self.change < 0 else "rose"

    @property
    def share(self) -> str:
        """The change in percent, with its sign; empty when there was nothing before."""
        if not self.before:
            return ""
        percent = self.change / abs(self.before) * 100
        return f"{percent:+.1f} %" if abs(percent) >= 0.1 else f"{percent:+.2g} %"

    def goes(self, direction: str) -> bool:
        return self.change < 0 if direction == "drop" else self.change > 0

    def is_like(self, other: Move) -> bool:
        return self.change * other.change > 0

    def tell(self) -> str:
        share = f" ({self.share})" if self.share and self.change else ""
        return f"{show_value(self.before)} to {show_value(self.after)}{share}"


class MonthChanges(TableService):
    """Compares months, and looks for what a change is made of."""

    async def compare(
        self,
        *,
        table: str,
        column: str,
        month: str,
        call: ToolCall,
        year: int | None = None,
        value: str | None = None,
        function: str = "average",
        movement: str = "drop",
    ) -> JsonObject:
        """A month with the one before it; without a year, of the one that is most likely meant.

        Raises:
            ToolFailure: validation_error when the table has no such months.
        """
        workspace, sheet = await self.open(call, table)
        series = await _series(workspace, sheet, column, function, value)
        moves = _moves_in(series, MONTHS.index(month) + 1)
        if not moves:
            message = f"{sheet.name} has no {month.capitalize()} with the month before it, so I cannot compare them."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        if year is not None and year not in moves:
            message = (
                f"For {month.capitalize()} there are the years {min(moves)} to {max(moves)} in {sheet.name}."
            )
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        chosen = year if year is not None else _choose_year(moves, movement, _usual(series))
        move = moves[chosen]
        first, second = (
            _key(*_previous(chosen, MONTHS.index(month) + 1)),
            _key(chosen, MONTHS.index(month) + 1),
        )
        rows: list[JsonObject] = [
            {"month": first, "value": move.before},
            {"month": second, "value": move.after},
        ]
        return {
            **about(workspace, sheet),
            **describe_rows(["month", "value"], rows, 2),
            "from_month": first,
            "to_month": second,
            "named": [_name(first), _name(second)],
            "what": phrase_of(function, sheet.column(column).name.replace("_", " "))
            + (f" of {value}" if value else ""),
            "told": move.tell(),
            "verb": move.verb,
            "as_said": move.goes(movement),
            "movement": movement,
            "year_chosen": year is None and len(moves) > 1,
            "years": [min(moves), max(moves)],
            "condition": _window(
                sheet, chosen, MONTHS.index(month) + 1, await _place_of(workspace, sheet, value)
            ),
        }

    async def report(
        self,
        *,
        table: str,
        column: str,
        from_month: str,
        to_month: str,
        call: ToolCall,
        value: str | None = None,
        function: str = "average",
    ) -> JsonObject:
        """What a change from one month to another (yyyy-mm) is made of."""
        first, second = from_month, to_month
        workspace, sheet = await self.open(call, table)
        series = await _series(workspace, sheet, column, function, value)
        if first not in series or second not in series:
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"{sheet.name} lacks {first} or {second}.")
        move = Move(sheet.column(column).name, series[first], series[second])
        groups = [] if value else await _by_group(workspace, sheet, column, function, (first, second))
        others = await _others(workspace, sheet, column, function, (first, second), value)
        seasons = _moves_in(series, int(second[5:]))
        reasons = [
            *_tell_groups(move, groups),
            *_tell_others(move, others),
            _tell_season(move, seasons, second),
            _tell_size(move, series),
        ]
        rows = _rows(groups, others, seasons, second)
        return {
            **about(workspace, sheet),
            "reasons": [reason for reason in reasons if reason],
            "conclusion": next((reason for reason in reasons if reason), ""),
            "rows": rows,
            "row_count": len(rows),
        }


async def _series(
    workspace: Workspace, sheet: Sheet, column: str, function: str, value: str | None
) -> dict[str, float]:
    """The measure by month (yyyy-mm), in order of time."""
    number_of(sheet, column)
    values = Values()
    where = await _only(workspace, sheet, value, values)
    measure = measure_of(sheet, function, column)
    sql = f"SELECT {_month(sheet)} AS m, {measure} FROM in0{where} GROUP BY 1 ORDER BY 1"  # noqa: S608
    found = await workspace.read(sql, values.named, sheet)
    return {str(month): float(str(amount)) for month, amount in found.rows if month and amount is not None}


def _month(sheet: Sheet) -> str:
    return f"strftime({quote(time_of(sheet).name)}, '%Y-%m')"


async def _place_of(workspace: Workspace, sheet: Sheet, value: str | None) -> tuple[str, str] | None:
    """The text column in which a value occurs, with the value."""
    if value is None:
        return None
    for column in sheet.columns:
        if column.is_text:
            sql = f"SELECT count(*) FROM in0 WHERE lower({quote(column.name)}) = lower($v0)"  # noqa: S608
            if (await workspace.read(sql, {"v0": value}, sheet)).rows[0][0]:
                return column.name, value
    raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"{sheet.name} has nothing called {value!r}.")


async def _only(workspace: Workspace, sheet: Sheet, value: str | None, values: Values) -> str:
    place = await _place_of(workspace, sheet, value)
    return f" WHERE lower({quote(place[0])}) = lower({values.add(place[1])})" if place else ""


def _moves_in(series: Mapping[str, float], month: int) -> dict[int, Move]:
    """By year, how the measure moved into this month."""
    moves: dict[int, Move] = {}
    for key, amount in series.items():
        if int(key[5:]) == month:
            before = series.get(_key(*_previous(int(key[:4]), month)))
            if before is not None:
                moves[int(key[:4])] = Move(key, before, amount)
    return moves


def _choose_year(moves: Mapping[int, Move], direction: str, usual: float) -> int:
    """The latest year in which it moved as was said, by more than a trifle if there is one; else the latest."""
    alike = [year for year, move in moves.items() if move.goes(direction)]
    marked = [year for year in alike if abs(moves[year].change) > usual * TRIFLE]
    return max(marked or alike or moves)


def _usual(series: Mapping[str, float]) -> float:
    """Half of all months change by less than this."""
    steps = [abs(after - before) for before, after in pairwise(series.values())]
    return median(steps) if steps else 0.0


def _previous(year: int, month: int) -> tuple[int, int]:
    return (year, month - 1) if month > 1 else (year - 1, 12)


def _key(year: int, month: int) -> str:
    return f"{year:04d}-{month:02d}"


def _name(key: str) -> str:
    """``2009-03`` is ``March 2009``."""
    return f"{MONTHS[int(key[5:]) - 1].capitalize()} {key[:4]}"


def _window(sheet: Sheet, year: int, month: int, place: tuple[str, str] | None) -> str:
    """A condition for the time around a month, as people would say it."""
    place_in_time = year * 12 + month - 1
    low, high = (divmod(place_in_time + months, 12) for months in (-MONTHS_BEFORE, MONTHS_AFTER))
    span = f"{low[0]:04d}-{low[1] + 1:02d}-01 and {high[0]:04d}-{high[1] + 1:02d}-28"
    only = f" and {place[0]} is {place[1]}" if place else ""
    return f"where {time_of(sheet).name} is between {span}{only}"


async def _by_group(
    workspace: Workspace, sheet: Sheet, column: str, function: str, months: tuple[str, str]
) -> list[Move]:
    """The change in each group of the first text column that has few of them."""
    for text in [one for one in sheet.columns if one.is_text]:
        sql = (
            f"SELECT {quote(text.name)}, {_month(sheet)} AS m, {measure_of(sheet, function, column)} FROM in0 "  # noqa: S608
            f"WHERE m IN ($first, $second) AND {quote(text.name)} IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2"
        )
        found = await workspace.read(sql, {"first": months[0], "second": months[1]}, sheet)
        moves = _pair_up([(str(name), str(m), amount) for name, m, amount in found.rows], months)
        if 2 <= len(moves) <= MOST_GROUPS:
            return sorted(moves, key=lambda move: move.change)
    return []


async def _others(
    workspace: Workspace, sheet: Sheet, column: str, function: str, months: tuple[str, str], value: str | None
) -> list[Move]:
    """How the other columns of numbers moved."""
    names = [one.name for one in sheet.numbers if one.name != sheet.column(column).name][:MOST_OTHERS]
    if not names:
        return []
    values = Values()
    where = await _only(workspace, sheet, value, values)
    measures = ", ".join(measure_of(sheet, function, name) for name in names)
    sql = f"SELECT {_month(sheet)} AS m, {measures} FROM in0{where} GROUP BY 1"  # noqa: S608
    found = {str(row[0]): row[1:] for row in (await workspace.read(sql, values.named, sheet)).rows}
    first, second = found.get(months[0], ()), found.get(months[1], ())
    flat = [
        (n, m, a)
        for m, row in zip(months, (first, second), strict=True)
        for n, a in zip(names, row, strict=False)
    ]
    return _pair_up(flat, months)


def _pair_up(cells: Sequence[tuple[str, str, object]], months: tuple[str, str]) -> list[Move]:
    """Moves of those that have a value in both months."""
    known = {(name, month): float(str(amount)) for name, month, amount in cells if amount is not None}
    names = dict.fromkeys(name for name, _, _ in cells)
    return [
        Move(name, known[name, months[0]], known[name, months[1]])
        for name in names
        if (name, months[0]) in known and (name, months[1]) in known
    ]


def _tell_groups(move: Move, groups: list[Move]) -> list[str]:
    """Who took part, the one that moved most first."""
    alike = [group for group in groups if group.is_like(move)]
    if not alike:
        return []
    most = max(alike, key=lambda group: abs(group.change))
    part = abs(most.change) / sum(abs(group.change) for group in alike)
    told = f"{most.name} {most.verb} most, from {most.tell()}, {part:.0%} of what went that way."
    against = [group.name for group in groups if group.change * move.change < 0]
    if not against:
        return [told, f"All {len(groups)} {move.verb}."]
    return [told, f"{_join(against)} went the other way."]


def _tell_others(move: Move, others: list[Move]) -> list[str]:
    alike = [other for other in others if other.is_like(move)]
    if not others:
        return []
    if not alike:
        return [
            f"None of the other {len(others)} columns of numbers {move.verb} with it."
            if len(others) > 1
            else ""
        ]
    alike.sort(key=lambda other: -abs(other.change / other.before) if other.before else 0.0)
    names = _join([f"{other.name} ({other.share})" for other in alike[:3]])
    many = f"All {len(others)}" if len(alike) == len(others) else f"{len(alike)} of the {len(others)}"
    return [f"{many} other columns of numbers {move.verb} as well, first of all {names}."]


def _tell_season(move: Move, seasons: Mapping[int, Move], second: str) -> str:
    """Whether this month is like that every year."""
    years = [year for year, other in seasons.items() if other.is_like(move)]
    month = MONTHS[int(second[5:]) - 1].capitalize()
    if len(seasons) < ENOUGH_YEARS or not years:
        return ""
    told = f"it {move.verb} in {month} in {len(years)} of {len(seasons)} years"
    if len(years) / len(seasons) >= OFTEN:
        return f"It is the season: {told}."
    if len(years) / len(seasons) <= SELDOM:
        return f"It is not the season: {told} ({_join([str(year) for year in years])})."
    return f"The season does not tell: {told}."


def _tell_size(move: Move, series: Mapping[str, float]) -> str:
    """The change beside the usual one from month to month."""
    usual = _usual(series)
    if not usual:
        return ""
    times = abs(move.change) / usual
    word = "large" if times >= LARGE else "small" if times <= TRIFLE else "ordinary"
    return f"As changes go it was {word}: half of all months change by less than {show_value(usual)}."


def _rows(
    groups: list[Move], others: list[Move], seasons: Mapping[int, Move], second: str
) -> list[JsonObject]:
    month = MONTHS[int(second[5:]) - 1].capitalize()
    named = [
        *(("groups", move.name, move) for move in groups),
        *(("other columns", move.name, move) for move in others),
        *((f"every {month}", str(year), move) for year, move in seasons.items()),
    ]
    return [{"section": section, "item": item, "value": move.tell()} for section, item, move in named]


def _join(names: Sequence[Json]) -> str:
    words = [str(name) for name in names]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
