from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from zoneinfo import ZoneInfo

import airportsdata

from parley import EntityValue, FailureCategory, ToolFailure

_EARTH_RADIUS_KM = 6371.0
_KINDS = (" International Airport", " Regional Airport", " Municipal Airport", " Airport", " Airfield")


@dataclass(frozen=True, slots=True)
class Airport:
    """An airport. `code`: IATA code. `country`: ISO 3166-1 code."""

    code: str
    icao: str
    name: str
    city: str
    country: str
    region: str
    zone: ZoneInfo
    latitude: float
    longitude: float


def find_airport(code: str) -> Airport:
    """Return the airport with an IATA or ICAO code, in any case.

    Raises:
        ToolFailure: validation_error if the code is unknown.
    """
    airport = all_airports().get(code.upper()) or _by_icao().get(code.upper())
    if airport is None:
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"I don't know the airport {code!r}.")
    return airport


@cache
def _by_icao() -> Mapping[str, Airport]:
    return {airport.icao: airport for airport in all_airports().values() if airport.icao}


@cache
def all_airports() -> Mapping[str, Airport]:
    return {
        code: Airport(
            code=code,
            icao=entry["icao"],
            name=entry["name"],
            city=entry["city"],
            country=entry["country"],
            region=entry["subd"],
            zone=ZoneInfo(entry["tz"]),
            latitude=float(entry["lat"]),
            longitude=float(entry["lon"]),
        )
        for code, entry in airportsdata.load("IATA").items()
    }


def distance_km(origin: Airport, destination: Airport) -> float:
    first, second = math.radians(origin.latitude), math.radians(destination.latitude)
    span = math.radians(destination.longitude - origin.longitude)
    height = (
        math.sin((second - first) / 2) ** 2 + math.cos(first) * math.cos(second) * math.sin(span / 2) ** 2
    )
    return 2 * _EARTH_RADIUS_KM * math.asin(math.sqrt(height))


def airports(main: Mapping[str, Sequence[str]], ordinary_words: Sequence[str]) -> Iterator[EntityValue]:
    """Yield the values of the entity `airport`.

    Args:
        main: names of large cities, by the code of each city's main airport. Only this airport gets the names.
        ordinary_words: words that never mean an airport. An airport whose IATA code is such a word (YES, CAN)
            is identified by its ICAO code, or left out if it has no ICAO code. The airports in `main` keep their
            codes.
    """
    taken = {name.casefold() for names in main.values() for name in names}
    banned = {word.casefold() for word in ordinary_words}
    known = all_airports()
    cities = Counter(airport.city for airport in known.values())
    hubs = {airport.city for airport in known.values() if "International" in airport.name}
    for code in [*main, *(code for code in known if code not in main)]:
        airport = known[code]
        in_large_city = airport.city.casefold() in taken
        names = [*main.get(code, ()), *_names_of(airport, alone=in_large_city)]
        is_hub = "International" in airport.name or airport.city not in hubs
        if is_hub and not in_large_city:
            names.append(airport.city)  # the city's name means its international airport, if there is one
        if cities[airport.city] > 1 and airport.region:
            names.append(f"{airport.city} {airport.region}")
        is_word = code.lower() in banned and code not in main
        if is_word and not airport.icao:
            continue
        yield EntityValue(
            canonical=airport.icao if is_word else code,
            name=_title(airport, main.get(code)),
            aliases=tuple(name for name in dict.fromkeys(names) if _is_name(name, banned)),
            metadata={"main": code in main, "city": airport.city, "country": airport.country},
        )


def _names_of(airport: Airport, *, alone: bool) -> list[str]:
    """Return the airport's names without words such as “Airport”.

    `alone`: True to include the name without the city, such as “Gatwick”.
    """
    short = airport.name
    for kind in _KINDS:
        short = short.removesuffix(kind)
    names = [short, *([short.removeprefix(airport.city).lstrip(" -/")] if alone else [])]
    return [name for name in names if name != airport.city]


def _is_name(name: str, banned: set[str]) -> bool:
    return len(name) > 2 and name.casefold() not in banned


def _title(airport: Airport, city_names: Sequence[str] | None) -> str:
    """Return the display name: “Oslo (OSL)” or “London Gatwick (LGW)”."""
    if city_names:
        return f"{city_names[0]} ({airport.code})"
    name = airport.name
    for kind in _KINDS:
        name = name.removesuffix(kind)
    if name in airport.city:
        name = airport.city
    place = name if airport.city in name else f"{airport.city} {name}"
    return f"{place} ({airport.code})"
