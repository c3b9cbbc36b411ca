from __future__ import annotations

import re

from parley import BasePolicy, Ending, Execution, JsonObject, SlotSource

_FIGURE = re.compile(r"\d{2,}")
"""Pattern for numbers of at least two digits, as in flight numbers, times and prices."""
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


class TripAdvice(BasePolicy):
    """The policy of `trip_advice`. It rejects flights that no search returned, and numbers without a source."""

    dact = "trip_advice"

    def find_fault(self, run: Execution, data: JsonObject) -> str | None:
        if _find_flight(run, data) is None:
            return f"no search returned a flight {data['flight_number']} on {data['day']}"
        return self.find_fault_in_text(run, data["advice"])

    def find_fault_in_text(self, run: Execution, text: str) -> str | None:
        known = {*_figures(str(run.returned)), *_figures(run.context.text), *_durations(run)}
        invented = [one for one in _figures(text) if one not in known]
        return f"no search returned {', '.join(invented)}" if invented else None

    def outputs(self, run: Execution) -> JsonObject:
        flight = _find_flight(run, run.data)
        if flight is None:
            return {}
        names = {"flight_id": "flight_id", "origin": "origin", "destination": "destination", "date": "day"}
        return {name: flight[key] for name, key in names.items()}


class CompareFares(BasePolicy):
    """The policy of `compare_fares`. It replaces the plan's days with the days of the chosen flights."""

    dact = "compare_fares"

    async def complete(self, run: Execution) -> Ending | None:
        plan = run.context.state.stack.plan_of(run.flow)
        if plan is not None:
            days = {"date": run.data["outbound"]["day"], "return_date": run.data["return"]["day"]}
            changed = {name: day for name, day in days.items() if plan.value(name) not in {None, day}}
            plan.fill_slots_by_label(changed, turn_id=run.context.ids.turn_id, source=SlotSource.TOOL)
        return await super().complete(run)


def _figures(text: str) -> list[str]:
    return _FIGURE.findall(_THOUSANDS.sub("", text))


def _durations(run: Execution) -> set[str]:
    """Return the hours and minutes of the found flights' durations as two-digit texts: 03 and 40 for 220 minutes."""
    flights = (flight for found in run.returned for flight in found.get("flights", ()))
    return {f"{part:02d}" for flight in flights for part in divmod(flight["minutes"], 60)}


def _find_flight(run: Execution, data: JsonObject) -> JsonObject | None:
    wanted = (_plain(data.get("flight_number")), data.get("day"))
    flights = (flight for found in run.returned for flight in found.get("flights", ()))
    return next((one for one in flights if (_plain(one["flight_number"]), one["day"]) == wanted), None)


def _plain(number: str | None) -> str:
    return (number or "").replace(" ", "")
