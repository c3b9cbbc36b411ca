"""The base tables: which files of the data package they come from, and what their columns are called.

Written down rather than read from the data, so that a domain can be loaded without opening them; a
test holds it to the data. The package is `vega_datasets` (MIT); its files are read, never imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distribution

from orchestrator.domain.services import EntityValue

PACKAGE = "vega_datasets"
TEXT, NUMBER, WHOLE, DAY, MOMENT = "VARCHAR", "DOUBLE", "BIGINT", "DATE", "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class BaseColumn:
    """`source`: its name, or an expression over the file's columns. `aliases`: what people call it."""

    name: str
    type: str
    source: str
    aliases: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "text" if self.type == TEXT else "date" if self.type in {DAY, MOMENT} else "number"


@dataclass(frozen=True, slots=True)
class BaseTable:
    """`rows`: how many there are. `file`: within the data package."""

    name: str
    title: str
    file: str
    rows: int
    columns: tuple[BaseColumn, ...]
    aliases: tuple[str, ...] = ()


def _column(name: str, kind: str, source: str | None = None, *aliases: str) -> BaseColumn:
    return BaseColumn(name, kind, source or name, aliases)


TABLES: Mapping[str, BaseTable] = {
    table.name: table
    for table in (
        BaseTable(
            "cars",
            "cars of the years 1970 to 1982",
            "cars.json",
            406,
            (
                _column("name", TEXT, "Name", "names", "model", "models"),
                _column("mpg", NUMBER, "Miles_per_Gallon", "miles per gallon", "mileage", "fuel economy"),
                _column("cylinders", WHOLE, "Cylinders", "number of cylinders"),
                _column("displacement", NUMBER, "Displacement", "engine size"),
                _column("horsepower", WHOLE, "Horsepower", "horse power", "hp", "horsepowers"),
                _column("weight", WHOLE, "Weight_in_lbs", "weights", "weigh", "lbs", "pounds"),
                _column("acceleration", NUMBER, "Acceleration"),
                _column("year", DAY, "Year", "years", "model year"),
                _column("origin", TEXT, "Origin", "origins", "region of origin"),
            ),
            ("car", "automobiles", "vehicles"),
        ),
        BaseTable(
            "airports",
            "airports of the United States",
            "airports.csv",
            3376,
            (
                _column("iata", TEXT, None, "iata code"),
                _column("name", TEXT),
                _column("city", TEXT, None, "cities"),
                _column("state", TEXT, None, "states"),
                _column("country", TEXT, None, "countries"),
                _column("latitude", NUMBER),
                _column("longitude", NUMBER),
            ),
            ("airport",),
        ),
        BaseTable(
            "weather",
            "daily weather in Seattle, 2012 to 2015",
            "seattle-weather.csv",
            1461,
            (
                _column("date", DAY, None, "dates", "day", "days"),
                _column("precipitation", NUMBER, None, "rainfall", "rain"),
                _column("temp_max", NUMBER, None, "maximum temperature", "highest temperature", "temp max"),
                _column("temp_min", NUMBER, None, "minimum temperature", "lowest temperature", "temp min"),
                _column("wind", NUMBER, None, "wind speed"),
                _column("conditions", TEXT, "weather", "kind of weather", "weather conditions"),
            ),
            ("seattle weather", "the weather table"),
        ),
        BaseTable(
            "stocks",
            "monthly share prices of five companies, 2000 to 2010",
            "stocks.csv",
            560,
            (
                _column("symbol", TEXT, None, "symbols", "company", "companies", "ticker"),
                _column("date", DAY, "strptime(date, '%b %-d %Y')::DATE"),
                _column("price", NUMBER, None, "prices", "share price"),
            ),
            ("stock", "shares", "stock prices"),
        ),
        BaseTable(
            "electricity",
            "net electricity generation of Iowa by source, 2001 to 2017, in thousands of MWh",
            "iowa-electricity.csv",
            51,
            (
                _column("year", DAY),
                _column("source", TEXT, None, "sources", "energy source", "energy sources"),
                _column("generation", WHOLE, "net_generation", "net generation"),
            ),
            ("iowa electricity", "electricity generation", "power generation"),
        ),
        BaseTable(
            "employment",
            "people employed in the United States by month, 2006 to 2015, in thousands",
            "us-employment.csv",
            120,
            (
                _column("month", DAY, None, "months"),
                _column("nonfarm", WHOLE),
                _column("private_jobs", WHOLE, "private", "private jobs"),
                _column("construction", WHOLE),
                _column("manufacturing", WHOLE),
                _column("retail_trade", NUMBER, None, "retail", "retail trade"),
                _column("information", WHOLE),
                _column("government", WHOLE),
                _column("nonfarm_change", WHOLE, None, "nonfarm change", "monthly change"),
            ),
            ("us employment", "jobs"),
        ),
        BaseTable(
            "iris",
            "measurements of 150 iris flowers of three species, in centimetres",
            "iris.json",
            150,
            (
                _column("sepal_length", NUMBER, "sepalLength", "sepal length"),
                _column("sepal_width", NUMBER, "sepalWidth", "sepal width"),
                _column("petal_length", NUMBER, "petalLength", "petal length"),
                _column("petal_width", NUMBER, "petalWidth", "petal width"),
                _column("species", TEXT),
            ),
            ("irises", "iris flowers", "flowers"),
        ),
        BaseTable(
            "barley",
            "barley yields in Minnesota, 1931 and 1932",
            "barley.json",
            120,
            (
                _column("yield", NUMBER, None, "yields", "harvest"),
                _column("variety", TEXT, None, "varieties"),
                _column("year", WHOLE),
                _column("site", TEXT, None, "sites", "farm"),
            ),
            ("barley yields",),
        ),
        BaseTable(
            "wheat",
            "price of wheat and weekly wages in England, 1565 to 1821",
            "wheat.json",
            52,
            (
                _column("year", WHOLE, "year::BIGINT"),
                _column("wheat_price", NUMBER, "wheat", "wheat price", "price of wheat"),
                _column("wages", NUMBER, None, "wage", "weekly wages"),
            ),
            ("wheat prices",),
        ),
        BaseTable(
            "seattle",
            "hourly temperatures in Seattle, 2010, in degrees Fahrenheit",
            "seattle-temps.csv",
            8759,
            (
                _column("date", MOMENT),
                _column("temperature", NUMBER, "temp", "temp", "temps", "temperatures"),
            ),
            ("seattle temperatures", "seattle temps"),
        ),
        BaseTable(
            "san_francisco",
            "hourly temperatures in San Francisco, 2010, in degrees Fahrenheit",
            "sf-temps.csv",
            8759,
            (_column("date", MOMENT), _column("temperature", NUMBER, "temp")),
            ("san francisco", "san francisco temperatures", "sf temperatures", "sf temps"),
        ),
    )
}

GROUPS: Mapping[str, tuple[str, ...]] = {
    "cars.origin": ("USA", "Europe", "Japan"),
    "stocks.symbol": ("MSFT", "AMZN", "IBM", "GOOG", "AAPL"),
    "weather.conditions": ("drizzle", "rain", "sun", "snow", "fog"),
    "electricity.source": ("Fossil Fuels", "Nuclear Energy", "Renewables"),
    "iris.species": ("setosa", "versicolor", "virginica"),
    "barley.site": ("University Farm", "Waseca", "Morris", "Crookston", "Grand Rapids", "Duluth"),
}
"""The groups that people name when they compare, by column."""

OTHER_VALUES: Mapping[str, tuple[str, ...]] = {
    "barley.variety": (
        "Manchuria", "Glabron", "Svansota", "Velvet", "Trebi", "Peatland",
        "No. 457", "No. 462", "No. 475", "Wisconsin No. 38",
    ),
    "airports.state": (
        "AL", "AK", "AS", "AZ", "AR", "CA", "CO", "CT", "DE", "DC", "FL", "GA", "GU", "HI", "ID", "IL",
        "IN", "IA", "KS", "KY", "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH",
        "NJ", "NM", "NY", "NC", "ND", "OH", "OK", "OR", "PA", "PR", "RI", "SC", "SD", "TN", "TX", "UT",
        "VT", "VA", "VI", "WA", "WV", "WI", "WY", "CQ", "NA",
    ),
}  # fmt: skip
"""More values that people name, of columns that have many."""

_NAMES_OF_GROUPS: Mapping[str, tuple[str, ...]] = {
    "USA": ("America", "American", "American cars", "the US"),
    "Europe": ("European", "European cars"),
    "Japan": ("Japanese", "Japanese cars"),
    "MSFT": ("Microsoft",),
    "AMZN": ("Amazon",),
    "GOOG": ("Google",),
    "AAPL": ("Apple",),
    "Fossil Fuels": ("fossil", "fossil fuel"),
    "Nuclear Energy": ("nuclear",),
    "Renewables": ("renewable", "renewable energy"),
    "sun": ("sunny", "sunny days"),
    "rain": ("rainy", "rainy days"),
    "snow": ("snowy",),
    "fog": ("foggy", "foggy days"),
    "drizzle": ("drizzly",),
    "AL": ("Alabama",), "AK": ("Alaska",), "AS": ("American Samoa",), "AZ": ("Arizona",), "AR": ("Arkansas",),
    "CA": ("California", "Californian"), "CO": ("Colorado",), "CT": ("Connecticut",), "DE": ("Delaware",),
    "DC": ("District of Columbia",), "FL": ("Florida",), "GA": ("Georgia",), "GU": ("Guam",), "HI": ("Hawaii",),
    "ID": ("Idaho",), "IL": ("Illinois",), "IN": ("Indiana",), "IA": ("Iowa",), "KS": ("Kansas",),
    "KY": ("Kentucky",), "LA": ("Louisiana",), "ME": ("Maine",), "MD": ("Maryland",), "MA": ("Massachusetts",),
    "MI": ("Michigan",), "MN": ("Minnesota",), "MS": ("Mississippi",), "MO": ("Missouri",), "MT": ("Montana",),
    "NE": ("Nebraska",), "NV": ("Nevada",), "NH": ("New Hampshire",), "NJ": ("New Jersey",),
    "NM": ("New Mexico",), "NY": ("New York State",), "NC": ("North Carolina",), "ND": ("North Dakota",),
    "OH": ("Ohio",), "OK": ("Oklahoma",), "OR": ("Oregon",), "PA": ("Pennsylvania",), "PR": ("Puerto Rico",),
    "RI": ("Rhode Island",), "SC": ("South Carolina",), "SD": ("South Dakota",), "TN": ("Tennessee",),
    "TX": ("Texas", "Texan"), "UT": ("Utah",), "VT": ("Vermont",), "VA": ("Virginia",), "VI": ("Virgin Islands",),
    "WA": ("Washington State",), "WV": ("West Virginia",), "WI": ("Wisconsin",), "WY": ("Wyoming",),
}  # fmt: skip

EXTREMES: Mapping[str, tuple[str, str]] = {
    "weight": ("heavy heavier heaviest", "light lighter lightest"),
    "horsepower": ("powerful stronger strongest", "weaker weakest"),
    "mpg": ("economical efficient", "thirsty thirstier thirstiest"),
    "acceleration": ("slow slower slowest", "quick fast faster fastest quicker quickest"),
    "price": ("expensive dearer dearest pricier priciest", "cheap cheaper cheapest"),
    "wheat_price": ("expensive dearer dearest pricier priciest", "cheap cheaper cheapest"),
    "precipitation": ("wetter wettest rainier rainiest", "dry drier driest"),
    "wind": ("windier windiest stormier stormiest", "calm calmer calmest"),
    "temp_max": ("hot hotter hottest warm warmer warmest", ""),
    "temp_min": ("", "cold colder coldest cool cooler coolest"),
    "temperature": ("hot hotter hottest warm warmer warmest", "cold colder coldest cool cooler coolest"),
    "year": ("newer newest latest", "older oldest earliest"),
    "date": ("latest newest", "earliest oldest"),
    "latitude": ("northernmost", "southernmost"),
    "longitude": ("easternmost", "westernmost"),
}
"""Adjectives that mean much and little of a column, from the plain form on."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What stands in for something that no table has. `words`: for the user."""

    table: str
    column: str
    words: str


_RETAIL = Measure("employment", "retail_trade", "retail trade (people employed in it, in thousands)")
_SHARES = Measure("stocks", "price", "the share price of five companies")
_STAND_INS: Mapping[str, Measure] = {
    **dict.fromkeys(
        ("sales", "sale", "retail sales", "turnover", "revenue", "revenues", "shopping"), _RETAIL
    ),
    **dict.fromkeys(("profit", "profits", "market", "the market", "stock market", "earnings"), _SHARES),
    **dict.fromkeys(
        ("hiring", "workers", "employees", "staff"), Measure("employment", "nonfarm", "people employed")
    ),
}

MEASURES_BY_MONTH = (
    "price (stocks)",
    "retail trade, construction, manufacturing and other jobs (employment)",
    "precipitation, wind and temperatures (weather)",
)
"""For people who ask about something else."""


def nearest_measure(said: str) -> Measure | None:
    """What comes nearest to something that no table has, if anything does."""
    return _STAND_INS.get(" ".join(said.casefold().replace("_", " ").split()))


def path_of(table: BaseTable) -> str:
    """Where a table's file is, found without importing the package, which would import pandas."""
    return str(distribution(PACKAGE).locate_file(f"{PACKAGE}/_data/{table.file}"))


def other_names(name: str) -> set[str]:
    """What else a table or column of this name is called."""
    known = [table for table in TABLES.values() if table.name == name]
    known_columns = [column for table in TABLES.values() for column in table.columns if column.name == name]
    return {alias.casefold() for one in (*known, *known_columns) for alias in one.aliases}


def tables_with(names: list[str]) -> list[str]:
    """The base tables that have all of these columns and groups; “year” and “month” suit any with dates."""
    return [table.name for table in TABLES.values() if all(_has(table, name) for name in names)]


def _has(table: BaseTable, name: str) -> bool:
    if any(name == column.name for column in table.columns):
        return True
    if name in {"year", "month"}:
        return any(column.type in {DAY, MOMENT} for column in table.columns)
    return any(
        name.casefold() == value.casefold()
        for place, values in GROUPS.items()
        if place.startswith(f"{table.name}.")
        for value in values
    )


def tables() -> list[EntityValue]:
    """Provider of the entity `table`."""
    return [
        EntityValue(
            table.name,
            table.name,
            (*table.aliases, f"{table.name} table"),
            {"rows": table.rows, "columns": [column.name for column in table.columns]},
        )
        for table in TABLES.values()
    ]


def columns() -> list[EntityValue]:
    """Provider of the entity `column`: every name once, with what it is called in any table."""
    found: dict[str, list[str]] = {}
    for table in TABLES.values():
        for column in table.columns:
            spoken = column.name.replace("_", " ")
            found.setdefault(column.name, []).extend((*column.aliases, spoken))
    return [EntityValue(name, name, tuple(dict.fromkeys(names)), {}) for name, names in found.items()]


def groups() -> list[EntityValue]:
    """Provider of the entity `group`: known values of text columns."""
    return [
        EntityValue(value, value, _NAMES_OF_GROUPS.get(value, ()), {"column": column})
        for column, values in GROUPS.items()
        for value in values
    ]


def names_of_group(value: str) -> tuple[str, ...]:
    """What else a value is called."""
    return _NAMES_OF_GROUPS.get(value, ())
