"""The words for values that forms have: functions, kinds of charts, directions, types and the like."""

from __future__ import annotations

from collections.abc import Mapping

FUNCTIONS: Mapping[str, str] = {
    "average": "average", "mean": "average", "avg": "average", "median": "median", "total": "sum", "sum": "sum",
    "sum of": "sum", "maximum": "maximum", "max": "maximum", "highest": "maximum", "largest": "maximum",
    "minimum": "minimum", "min": "minimum", "lowest": "minimum", "smallest": "minimum",
    "standard deviation": "deviation", "deviation": "deviation",
    "how many": "count", "number of": "count", "number": "count", "count": "count",
    "how many different": "distinct", "how many distinct": "distinct", "number of different": "distinct",
    "number of distinct": "distinct",
}  # fmt: skip
CHARTS: Mapping[str, str] = {
    "bar chart": "bar", "bar graph": "bar", "line chart": "line", "line graph": "line", "scatter plot": "scatter",
    "scatterplot": "scatter", "histogram": "histogram", "chart": "", "graph": "", "plot": "", "diagram": "",
}  # fmt: skip
"""The kinds; empty where the columns decide."""
DIRECTIONS: Mapping[str, str] = {
    "descending": "descending", "desc": "descending", "highest first": "descending", "largest first": "descending",
    "ascending": "ascending", "asc": "ascending", "lowest first": "ascending", "smallest first": "ascending",
}  # fmt: skip
TOP: Mapping[str, str] = {"top": "descending", "bottom": "ascending"}
FORMATS: Mapping[str, str] = {"csv": "csv", "json": "json"}
CASES: Mapping[str, str] = {
    "upper": "upper", "uppercase": "upper", "lower": "lower", "lowercase": "lower", "title": "title",
}  # fmt: skip
STRATEGIES: Mapping[str, str] = {
    "mean": "mean", "average": "mean", "median": "median", "most common value": "common", "most common": "common",
    "mode": "common", "previous value": "previous", "previous": "previous", "zero": "zero",
}  # fmt: skip
TYPES: Mapping[str, str] = {
    "text": "text", "number": "number", "numbers": "number", "whole number": "whole", "whole numbers": "whole",
    "whole": "whole", "date": "date", "dates": "date",
}  # fmt: skip
SEPARATORS: Mapping[str, str] = {
    "space": "space", "spaces": "space", "comma": "comma", "commas": "comma", "dash": "dash", "dashes": "dash",
    "slash": "slash", "slashes": "slash",
}  # fmt: skip
MOVEMENTS: Mapping[str, str] = {
    **dict.fromkeys("drop fall decline decrease sink dropped fell declined decreased".split(), "drop"),
    **dict.fromkeys("rise grow increase climb jump risen rose grown increased".split(), "rise"),
}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
RHYTHMS: Mapping[str, str] = {
    **{word: word for word in ("day", "week", "month")},
    "daily": "day", "weekly": "week", "monthly": "month", **dict.fromkeys(WEEKDAYS, "week"),
}  # fmt: skip


def one_of(words: Mapping[str, str]) -> str:
    """Write a pattern for any of these words, the longest first."""
    return "|".join(sorted(words, key=len, reverse=True))
