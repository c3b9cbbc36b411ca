"""The words that requests about tables are made of, whatever the tables are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def words(text: str) -> frozenset[str]:
    """The words of a text that is a list of words."""
    return frozenset(text.split())


FILLERS = words(
    "the a an please kindly me us my our your could can would will you i i'd want wanna need let's hey ok okay "
    "um well actually really some gimme give all any so there's"
)
"""Words that carry nothing; rules never see them."""

MONTHS: Mapping[str, int] = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul",
         "august aug", "september sep sept", "october oct", "november nov", "december dec"), 1,
    )
    for name in names.split()
}  # fmt: skip

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

SMALL_NUMBERS: Mapping[str, str] = {
    word: str(number)
    for number, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 2
    )
} | {"fifteen": "15", "twenty": "20", "thirty": "30", "fifty": "50", "hundred": "100"}  # fmt: skip

FUNCTIONS: Mapping[str, str] = {
    "average": "average", "mean": "average", "avg": "average", "averages": "average", "typical": "average",
    "on average": "average", "median": "median", "middle": "median", "medians": "median",
    "total": "sum", "sum": "sum", "sum of": "sum", "overall": "sum", "altogether": "sum", "how much": "sum",
    "totals": "sum",
    "maximum": "maximum", "max": "maximum", "highest": "maximum", "largest": "maximum", "biggest": "maximum",
    "greatest": "maximum", "longest": "maximum", "widest": "maximum", "peak": "maximum",
    "top": "maximum", "record": "maximum",
    "minimum": "minimum", "min": "minimum", "lowest": "minimum", "smallest": "minimum", "least": "minimum",
    "shortest": "minimum", "narrowest": "minimum",
    "how many": "count", "count": "count", "number of": "count", "counts": "count", "frequency": "count",
    "how many different": "distinct", "how many distinct": "distinct", "how many unique": "distinct",
    "number of different": "distinct", "number of distinct": "distinct", "number of unique": "distinct",
    "count distinct": "distinct", "distinct count": "distinct", "how many kinds of": "distinct",
    "standard deviation": "deviation", "stddev": "deviation", "std": "deviation", "spread": "deviation",
    "variation": "deviation", "deviation": "deviation",
}  # fmt: skip
"""What is said for a function over a column."""

EXTREME_WORDS: Mapping[str, str] = {
    **dict.fromkeys(
        words("highest most largest biggest greatest longest widest maximum max best top"), "descending"
    ),
    **dict.fromkeys(
        words("lowest least smallest fewest shortest narrowest minimum min worst bottom"), "ascending"
    ),
}
"""Superlatives that go with any column."""

PERIODS: Mapping[str, str] = {
    "month": "month", "months": "month", "monthly": "month", "year": "year", "years": "year", "yearly": "year",
    "annually": "year", "annual": "year", "quarter": "quarter", "quarters": "quarter", "quarterly": "quarter",
    "week": "week", "weeks": "week", "weekly": "week",
}  # fmt: skip

CHARTS: Mapping[str, str] = {
    "bar": "bar", "bars": "bar", "barchart": "bar", "column chart": "bar",
    "line": "line", "trend": "line", "time series": "line", "over time": "line", "curve": "line",
    "scatter": "scatter", "scatterplot": "scatter", "scattergram": "scatter",
    "histogram": "histogram", "distribution": "histogram",
}  # fmt: skip

OPERATORS: Mapping[str, str] = {
    "more than": ">", "greater than": ">", "higher than": ">", "larger than": ">", "bigger than": ">", "over": ">",
    "above": ">", "exceeding": ">", "exceeds": ">", "beyond": ">", ">": ">", "longer than": ">", "wider than": ">",
    "after": ">", "later than": ">",
    "less than": "<", "fewer than": "<", "lower than": "<", "smaller than": "<", "under": "<", "below": "<", "<": "<",
    "before": "<", "earlier than": "<", "prior to": "<", "shorter than": "<", "narrower than": "<",
    "at least": ">=", "no less than": ">=", "not less than": ">=", ">=": ">=", "since": ">=",
    "minimum": ">=", "from": ">=",
    "at most": "<=", "no more than": "<=", "not more than": "<=", "up to": "<=", "<=": "<=",
    "until": "<=", "till": "<=",
    "not": "!=", "isn't": "!=", "aren't": "!=", "!=": "!=", "<>": "!=", "not equal to": "!=", "other than": "!=",
    "=": "=", "==": "=", "equal to": "=", "equals": "=", "exactly": "=",
    "does not contain": "not contains", "not containing": "not contains", "doesn't contain": "not contains",
    "contains": "contains", "containing": "contains", "contain": "contains",
    "including": "contains", "like": "contains",
    "starts with": "starts", "starting with": "starts", "start with": "starts", "begins with": "starts",
    "beginning with": "starts", "ends with": "ends", "ending with": "ends",
    "between": "between", "not between": "not between",
}  # fmt: skip
"""What is said between a column and a value."""

NEGATIONS = frozenset(
    {"not", "except", "excluding", "without", "non", "but not", "other than", "aren't", "isn't"}
)
MISSING = frozenset({"missing", "empty", "null", "blank", "unknown", "nan", "none"})
COPULAS = words("is are was were being of has have having had that which with it's")

ORDINARY = frozenset(
    " ".join((*FUNCTIONS, *EXTREME_WORDS, *PERIODS, *CHARTS, *OPERATORS)).split()
) | frozenset(
    (
        *WEEKDAYS,
        *FILLERS,
        *SMALL_NUMBERS,
        *Path(__file__).with_name("ordinary.txt").read_text(encoding="utf-8").split(),
    )
)
"""Words that are what they are: no misspellings of names. Those longer than four letters are repaired to, too."""
