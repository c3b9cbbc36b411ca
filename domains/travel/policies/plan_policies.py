"""The policy of `plan_trip`, which resolves weekends before the plan's steps run."""

from __future__ import annotations

from datetime import UTC, date, datetime

from domains.travel.weekend import DAY, Weekend, choose_weekend, show_span
from parley import (
    AskSlot,
    Ending,
    Execution,
    JsonObject,
    NeedsInput,
    NoticeKind,
    PlanFlow,
    PlanPolicy,
    SlotSource,
)

OTHER_DAYS = ("other_date", "other_return_date")
"""Slots for an alternative day of departure and an alternative day of return."""
ASKED_AGAIN = "asked_again"
"""Key in a flow's notes for the slot that the assistant last asked for again."""


class PlanTripPolicy(PlanPolicy):
    dact = "plan_trip"

    async def review(self, run: Execution) -> Ending | None:
        """Fill in the days of a requested weekend. Ask again if origin and destination are the same."""
        _resolve_weekend(run)
        ending = await super().review(run)
        if ending is not None:
            return ending
        if run.value("origin") == run.value("destination"):
            return _ask_again(run, ("destination", "origin"), "You're already there.")
        return None


def _resolve_weekend(run: Execution) -> None:
    """Fill in the days of the requested weekend that the user did not name, and tell the user these days.

    If the days are assumed and there is a budget, also fill in alternative days, one day later.
    """
    plan = run.flow
    if not isinstance(plan, PlanFlow) or plan.rounds or _is_users(plan, "return_date"):
        return
    named = plan.slots["date"] if _is_users(plan, "date") else None
    leave = date.fromisoformat(str(named.value)) if named is not None else None
    today = datetime.fromtimestamp(run.context.local_now, UTC).date()
    weekend = choose_weekend(plan.goal, today, leave, named.text if named is not None else "")
    if weekend is None:
        return
    for other in OTHER_DAYS:
        plan.clear(other)
    wanted: JsonObject = {"date": weekend.leave.isoformat(), "return_date": weekend.back.isoformat()}
    if weekend.assumed and run.value("budget") is not None:
        days = (weekend.leave + DAY, weekend.back + DAY)
        wanted |= {name: day.isoformat() for name, day in zip(OTHER_DAYS, days, strict=True)}
    news = any(plan.value(name) != wanted[name] for name in ("date", "return_date"))
    fresh = {name: day for name, day in wanted.items() if plan.value(name) != day}
    plan.fill_slots_by_label(fresh, turn_id=run.context.ids.turn_id, source=SlotSource.DEFAULT)
    if named is not None:
        held = plan.slots["date"]
        held.source, held.text = named.source, named.text  # the value still comes from the user's words
    if news:
        run.context.tell(NoticeKind.ASSUMED, why=_describe(weekend, other_days=len(wanted) > len(OTHER_DAYS)))


def _is_users(plan: PlanFlow, slot: str) -> bool:
    held = plan.slots.get(slot)
    return held is not None and held.source is not SlotSource.DEFAULT


def _describe(weekend: Weekend, *, other_days: bool) -> str:
    if not weekend.assumed:
        return f"That's {show_span(weekend)}."
    more = ", or a day later if that suits your budget better" if other_days else ""
    return f"I'll use the coming weekend, {show_span(weekend)}{more}; just name another day if you like."


def _ask_again(run: Execution, slots: tuple[str, str], why: str) -> NeedsInput:
    """Clear one of two contradictory slots and ask for its value, alternating between the slots (AM-4)."""
    slot = slots[1] if run.flow.notes.get(ASKED_AGAIN) == slots[0] else slots[0]
    run.flow.notes[ASKED_AGAIN] = slot
    run.context.tell(NoticeKind.INVALID_VALUE, why=why, slot=slot.replace("_", " "))
    run.flow.clear(slot)
    question = AskSlot(flow_id=run.flow.flow_id, slot=slot)
    run.context.state.ambiguity.declare(question)
    return NeedsInput()
