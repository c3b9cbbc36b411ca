"""Find out why a measure changed from one month to the next: how much, who took part, whether it always does so.

What is found are facts of the table, the most telling first; causes outside of it are nobody's here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from domains.analytics.statements.conditions import MONTHS
from domains.analytics.statements.parts import Values, invalid
from domains.analytics.statements.question import Question, column_with, write_question
from domains.analytics.store.sheet import Sheet
from domains.analytics.store.workspace import TableService, Workspace
from domains.analytics.tools.display import about, describe_rows, show_value
from orchestrator import JsonObject, ToolCall

MONTHS_BEFORE, MONTHS_AFTER = 9, 6
"""How much of the time around a change is drawn."""
MOST_GROUPS, MOST_OTHERS = 12, 8
LARGE, TRIFLE = 2.0, 0.5
"""In usual changes from month to month."""
OFTEN, SELDOM, ENOUGH_YEARS = 0.7, 0.3, 4

Series = Mapping[int, float]
"""A measure by month, in order; months are counted from the year 0."""


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
        return "stayed the same" if not self.change else "fell" if self.change < 0 else "rose"

    @property
    def share(self) -> str:
        """The change in percent, with its sign; empty when there was nothing before."""
        percent = self.change / abs(self.before) * 100 if self.before else 0.0
        return "" if not self.before else f"{percent:+.1f} %" if abs(percent) >= 0.1 else f"{percent:+.2g} %"

    def goes(self, direction: str) -> bool:
        return self.change < 0 if direction == "drop" else self.change > 0

    def is_like(self, other: Move) -> bool:
        return self.change * other.change > 0

    def describe(self) -> str:
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
        """Compare a month with the one before it; without a year, of the one that is most likely meant.

        Raises:
            ToolFailure: validation_error when the table has no such months.
        """
        workspace, sheet = await self.open(call, table)
        asked = Question(function=function, column=sheet.number(column).name, value=value)
        series = await _read_series(workspace, sheet, asked)
        moves, name = _moves_into(series, MONTHS.index(month)), month.capitalize()
        if not moves:
            raise invalid(f"{sheet.name} has no {name} with the month before it, so I cannot compare them.")
        if year is not None and year not in moves:
            raise invalid(f"For {name} there are the years {min(moves)} to {max(moves)} in {sheet.name}.")
        chosen = year if year is not None else _choose_year(moves, movement, _usual(series))
        move, second = moves[chosen], chosen * 12 + MONTHS.index(month)
        keys = [_key(second - 1), _key(second)]
        rows: list[JsonObject] = [
            {"month": keys[0], "value": move.before},
            {"month": keys[1], "value": move.after},
        ]
        around = f"where {sheet.time.name} is between {_key(second - MONTHS_BEFORE)} and {_key(second + MONTHS_AFTER)}"
        if value:
            around += f" and {(await column_with(workspace, sheet, value)).name} is {value}"
        what = replace(asked, column=str(asked.column).replace("_", " ")).measured
        return {
            **about(workspace, sheet),
            **describe_rows(["month", "value"], rows, 2),
            "from_month": keys[0],
            "to_month": keys[1],
            "named": [_name(second - 1), _name(second)],
            "what": f"{what} of {value}" if value else what,
            "moved": move.describe(),
            "verb": move.verb,
            "as_said": move.goes(movement),
            "movement": movement,
            "year_chosen": year is None and len(moves) > 1,
            "years": [min(moves), max(moves)],
            "condition": around,
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
        """Report what a change from one month to another (yyyy-mm) is made of."""
        workspace, sheet = await self.open(call, table)
        months = _month_of(from_month), _month_of(to_month)
        asked = Question(function=function, column=sheet.number(column).name, value=value)
        series = await _read_series(workspace, sheet, asked)
        if not all(month in series for month in months):
            raise invalid(f"{sheet.name} lacks {from_month} or {to_month}.")
        move = Move(str(asked.column), series[months[0]], series[months[1]])
        groups = [] if value else await _move_groups(workspace, sheet, asked, months)
        numbers = [one.name for one in sheet.numbers if one.name != asked.column][:MOST_OTHERS]
        others = _pair_up(
            {one: await _read_series(workspace, sheet, replace(asked, column=one)) for one in numbers}, months
        )
        seasons, month = _moves_into(series, months[1] % 12), MONTHS[months[1] % 12].capitalize()
        told = [*_describe_groups(move, groups), _describe_others(move, others)]
        told += [_describe_season(move, seasons, month), _describe_size(move, series)]
        reasons = [reason for reason in told if reason]
        rows: list[JsonObject] = [
            {"section": section, "item": item, "value": one.describe()}
            for section, moves in (
                ("groups", [(one.name, one) for one in groups]),
                ("other columns", [(one.name, one) for one in others]),
                (f"every {month}", [(str(year), one) for year, one in seasons.items()]),
            )
            for item, one in moves
        ]
        return {
            **about(workspace, sheet),
            "reasons": [*reasons],
            "conclusion": reasons[0] if reasons else "",
            "rows": rows,
            "row_count": len(rows),
        }


async def _read_series(workspace: Workspace, sheet: Sheet, asked: Question) -> Series:
    """Read a measure by month."""
    return (await _read_groups(workspace, sheet, asked)).get("", {})


async def _read_groups(
    workspace: Workspace, sheet: Sheet, asked: Question, group: str | None = None
) -> dict[str, dict[int, float]]:
    """Read a measure by month, of each group if there is one."""
    values, found = Values(), dict[str, dict[int, float]]()
    sql = await write_question(workspace, sheet, replace(asked, by="month", also_by=group), values)
    for month, *names, amount in (await workspace.read(sql, values.named, sheet)).rows:
        if month is not None and amount is not None and None not in names:
            found.setdefault(str(names[0]) if names else "", {})[_month_of(str(month))] = float(str(amount))
    return found


async def _move_groups(
    workspace: Workspace, sheet: Sheet, asked: Question, months: tuple[int, int]
) -> list[Move]:
    """Compare the groups of the first text column that has few of them, in two months; the lowest first."""
    for text in [one.name for one in sheet.columns if one.is_text]:
        moves = _pair_up(await _read_groups(workspace, sheet, asked, text), months)
        if 2 <= len(moves) <= MOST_GROUPS:
            return sorted(moves, key=lambda move: (move.change, move.name))
    return []


def _month_of(key: str) -> int:
    """``2009-03`` as the number of the month."""
    return int(key[:4]) * 12 + int(key[5:]) - 1


def _key(month: int) -> str:
    return f"{month // 12:04d}-{month % 12 + 1:02d}"


def _name(month: int) -> str:
    """``March 2009``."""
    return f"{MONTHS[month % 12].capitalize()} {month // 12}"


def _pair_up(found: Mapping[str, Series], months: tuple[int, int]) -> list[Move]:
    """Give the moves of those that have a value in both months."""
    first, second = months
    return [
        Move(name, series[first], series[second])
        for name, series in found.items()
        if first in series and second in series
    ]


def _moves_into(series: Series, month: int) -> dict[int, Move]:
    """Say how the measure moved into a month (from 0), by year."""
    return {
        key // 12: Move(_key(key), series[key - 1], amount)
        for key, amount in series.items()
        if key % 12 == month and key - 1 in series
    }


def _choose_year(moves: Mapping[int, Move], direction: str, usual: float) -> int:
    """Choose the latest year in which it moved as was said, by more than a trifle if there is one; else the latest."""
    alike = [year for year, move in moves.items() if move.goes(direction)]
    marked = [year for year in alike if abs(moves[year].change) > usual * TRIFLE]
    return max(marked or alike or moves)


def _usual(series: Series) -> float:
    """Give the change than which half of all months change by less."""
    steps = [abs(after - before) for before, after in pairwise(series.values())]
    return median(steps) if steps else 0.0


def _describe_groups(move: Move, groups: list[Move]) -> list[str]:
    """Say who took part, the one that moved most first."""
    alike = [group for group in groups if group.is_like(move)]
    if not alike:
        return []
    most = max(alike, key=lambda group: abs(group.change))
    part = abs(most.change) / sum(abs(group.change) for group in alike)
    first = f"{most.name} {most.verb} most, from {most.describe()}, {part:.0%} of what went that way."
    against = [group.name for group in groups if group.change * move.change < 0]
    return [first, f"{_join(against)} went the other way." if against else f"All {len(groups)} {move.verb}."]


def _describe_others(move: Move, others: list[Move]) -> str:
    """Say which other columns moved along."""
    count = len(others)
    alike = [other for other in others if other.is_like(move)]
    if not alike:
        return f"None of the other {count} columns of numbers {move.verb} with it." if count > 1 else ""
    alike.sort(key=lambda other: -abs(other.change / other.before) if other.before else 0.0)
    names = _join([f"{other.name} ({other.share})" for other in alike[:3]])
    many = f"All {count}" if len(alike) == count else f"{len(alike)} of the {count}"
    return f"{many} other columns of numbers {move.verb} as well, first of all {names}."


def _describe_season(move: Move, seasons: Mapping[int, Move], month: str) -> str:
    """Say whether this month is like that every year."""
    years = [year for year, other in seasons.items() if other.is_like(move)]
    if len(seasons) < ENOUGH_YEARS or not years:
        return ""
    share = len(years) / len(seasons)
    found = f"it {move.verb} in {month} in {len(years)} of {len(seasons)} years"
    if share >= OFTEN:
        return f"It is the season: {found}."
    if share <= SELDOM:
        return f"It is not the season: {found} ({_join([str(year) for year in years])})."
    return f"The season does not tell: {found}."


def _describe_size(move: Move, series: Series) -> str:
    """Put the change beside the usual one from month to month."""
    usual = _usual(series)
    if not usual:
        return ""
    times = abs(move.change) / usual
    word = "large" if times >= LARGE else "small" if times <= TRIFLE else "ordinary"
    return f"As changes go it was {word}: half of all months change by less than {show_value(usual)}."


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
