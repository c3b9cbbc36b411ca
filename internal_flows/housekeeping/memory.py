"""`distil_preferences` and `tidy_scratchpad`: what a session leaves behind for later ones, and order in its notes."""

from __future__ import annotations

from itertools import groupby
from typing import Any, ClassVar

from internal_flows.stages import InternalFlow, RunContext, skip
from orchestrator.ports.housekeeping import SlotUse
from orchestrator.ports.scratchpad import CAPACITY, Entry, EntryKind
from orchestrator.types import Json, JsonObject

SEEN_AT_LEAST = 3
SHARE_AT_LEAST = 0.6


class DistilPreferences(InternalFlow):
    """A value that a user gives for a slot most of the time becomes a preference.

    Configuration: `seen_at_least` (3), `share_at_least` (0.6).
    """

    name: ClassVar[str] = "distil_preferences"
    trigger: ClassVar[str] = "summary_due"
    depends_on: ClassVar[tuple[str, ...]] = ("summarize_session",)
    tools: ClassVar[tuple[str, ...]] = ("housekeeping",)

    async def before_all(self, run: RunContext) -> Any:
        found = None
        if run.session_id is not None:
            found = await run.tools["housekeeping"].state(run.tenant_id, run.session_id)
        if found is None or found.user_id is None:
            return skip("The session has no known user.")
        return {"user_id": found.user_id}

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        store, user_id = run.tools["housekeeping"], run.data["user_id"]
        habits = find_habits(
            await store.slot_uses(run.tenant_id, user_id),
            run.config.get("seen_at_least", SEEN_AT_LEAST),
            run.config.get("share_at_least", SHARE_AT_LEAST),
        )
        for key, value in habits.items():
            await store.set_preference(run.tenant_id, user_id, key, value)
        return {"preferences": sorted(habits)}


def find_habits(uses: list[SlotUse], seen: int, share: float) -> dict[str, JsonObject]:
    """Preferences by ``dact.slot``, from uses that stand together by slot, the most frequent first."""
    habits: dict[str, JsonObject] = {}
    for (dact, slot), group in groupby(uses, key=lambda use: (use.dact, use.slot)):
        values = list(group)
        first, total = values[0], sum(use.times for use in values)
        if first.times >= seen and first.times >= share * total:
            habits[f"{dact}.{slot}"] = {"value": first.value, "seen": first.times, "of": total}
    return habits


class TidyScratchpad(InternalFlow):
    """Merges notes that say the same, drops proposals, which the lane has by now; at most 64 stay."""

    name: ClassVar[str] = "tidy_scratchpad"
    trigger: ClassVar[str] = "summary_due"
    depends_on: ClassVar[tuple[str, ...]] = ("distil_preferences",)
    tools: ClassVar[tuple[str, ...]] = ("scratchpad",)

    async def before_all(self, run: RunContext) -> Any:
        return skip("It needs a session.") if run.session_id is None else None

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        pad = run.tools["scratchpad"]
        entries = await pad.read(run.tenant_id, run.session_id, touch=False)
        merged, superfluous = tidy(entries)
        if merged:
            await pad.put(run.tenant_id, run.session_id, merged, operation=run.run_id)
        removed = await pad.remove(run.tenant_id, run.session_id, superfluous)
        return {"kept": len(entries) - removed, "removed": removed}


def tidy(entries: list[Entry]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Entries to be written anew, with the labels of those merged into them, and ids to be removed.

    `entries`: the least recently used first. A merged note has the labels of all: what was made from private
    text stays private.
    """
    newest: dict[tuple[Json, ...], Entry] = {}
    superfluous = [entry.entry_id for entry in entries if entry.kind is EntryKind.PROPOSAL]
    merged: dict[str, Entry] = {}
    for entry in reversed([entry for entry in entries if entry.kind is not EntryKind.PROPOSAL]):
        content = (entry.kind, " ".join((entry.text or "").split()).casefold(), repr(entry.data))
        kept = newest.setdefault(content, entry)
        if kept is entry:
            continue
        superfluous.append(entry.entry_id)
        labels = tuple(sorted({*kept.labels, *entry.labels}))
        if labels != tuple(sorted(kept.labels)):
            newest[content] = merged[kept.entry_id] = Entry.from_json({**kept.to_json(), "labels": labels})
    left = [entry for entry in entries if entry.entry_id not in superfluous]
    superfluous += [entry.entry_id for entry in left[: max(0, len(left) - CAPACITY)]]
    return tuple(merged.values()), tuple(superfluous)
