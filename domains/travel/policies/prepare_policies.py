"""Policies of Prepare flows. Offers and quotes are no flows: they are tools of the flows that use them."""

from __future__ import annotations

import re

from orchestrator import BasePolicy, Ending, Execution, JsonObject, SlotSource

_FIGURE = re.compile(r"\d{2,}")
"""Of flights, times and prices."""


class TripAdvice(BasePolicy):
    """Advice is about a flight that a search has really found; that flight can be booked next."""

    dact = "trip_advice"

    def find_fault(self, run: Execution, data: JsonObject) -> str | None:
        if _find_flight(run, data) is not None:
            return None
        return f"no search returned a flight {data['flight_number']} on {data['day']}"

    def find_fault_in_text(self, run: Execution, text: str) -> str | None:
        found = str(run.returned)
        invented = [one for one in _FIGURE.findall(text) if one not in found and one not in run.context.text]
        return f"no search returned {', '.join(invented)}" if invented else None

    def outputs(self, run: Execution) -> JsonObject:
        flight = _find_flight(run, run.data)
        if flight is None:
            return {}
        names = {"flight_id": "flight_id", "origin": "origin", "destination": "destination", "date": "day"}
        return {name: flight[key] for name, key in names.items()}


class CompareFares(BasePolicy):
    """Makes days that were chosen other than the plan had them the plan's days: those are what is booked."""

    dact = "compare_fares"

    async def complete(self, run: Execution) -> Ending | None:
        plan = run.context.changes.state.stack.plan_of(run.flow)
        if plan is not None:
            days = {"date": run.data["outbound"]["day"], "return_date": run.data["return"]["day"]}
            changed = {name: day for name, day in days.items() if plan.value(name) not in {None, day}}
            plan.fill_slots_by_label(changed, turn_id=run.context.ids.turn_id, source=SlotSource.TOOL)
        return await super().complete(run)


def _find_flight(run: Execution, data: JsonObject) -> JsonObject | None:
    """Find the flight that the advice names, among all that the searches returned."""
    wanted = (_plain(data.get("flight_number")), data.get("day"))
    flights = (flight for found in run.returned for flight in found.get("flights", ()))
    return next((one for one in flights if (_plain(one["flight_number"]), one["day"]) == wanted), None)


def _plain(number: str | None) -> str:
    return (number or "").replace(" ", "")
