"""`distil_preferences`: infer a user's habits, playbooks and notes from conversations (CO-4)."""

from itertools import groupby
from typing import Any, ClassVar

from internal_flows.session.promotion import (
    PROMOTED,
    About,
    Bars,
    describe_origin,
    find_cause,
    select,
    with_data,
)
from internal_flows.stages import InternalFlow, RunContext, skip
from orchestrator.memory.tokenizer import share_of
from orchestrator.memory.user_memory import name_note
from orchestrator.ports.material import CONVERSATION, HABITS, Conversation, SlotUse
from orchestrator.ports.memory.preferences import LONGEST_TEXT, Preference, PreferenceKind, Source
from orchestrator.ports.memory.scratchpad import Entry
from orchestrator.types import Json, JsonObject

SEEN_AT_LEAST = 3
SHARE_AT_LEAST = 0.6
UNTRUSTED = "untrusted"


class DistilPreferences(InternalFlow):
    """A flow that infers a user's preferences.

    A slot value that the user usually gives becomes a rule. A repeated task becomes a playbook, and a valuable
    scratchpad entry about the user becomes a note. Entries from untrusted text are never promoted.
    Configuration: `seen_at_least` (3), the minimum number of occurrences; `share_at_least` (0.6), the minimum
    share of a value among a slot's values; and the thresholds of `promotion.Bars`.
    """

    name: ClassVar[str] = "distil_preferences"
    trigger: ClassVar[str] = "summary_due"
    depends_on: ClassVar[tuple[str, ...]] = ("summarize_session",)
    material: ClassVar[tuple[str, ...]] = (CONVERSATION, HABITS)
    tools: ClassVar[tuple[str, ...]] = ("preferences", "scratchpad")

    async def before_all(self, run: RunContext) -> Any:
        found: Conversation | None = run.material[CONVERSATION]
        if found is None or found.user_id is None:
            return skip("The session has no user.")
        uses: list[SlotUse] = run.material[HABITS]
        seen = run.config.get("seen_at_least", SEEN_AT_LEAST)
        origin: JsonObject = {"run_id": run.run_id, "session_id": run.session_id}
        habits = find_habits(uses, seen, run.config.get("share_at_least", SHARE_AT_LEAST), origin)
        learnt = (*habits, *find_playbooks(uses, seen, origin))
        if learnt:
            await run.tools["preferences"].remember(run.tenant_id, found.user_id, learnt)
        return {"user_id": found.user_id, "learnt": [preference.key for preference in learnt]}

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        store, user_id = run.tools["preferences"], run.data["user_id"]
        entries, notes = await self._notes(run, await store.of_user(run.tenant_id, user_id))
        if notes:
            await store.remember(run.tenant_id, user_id, notes)
            operation = f"{run.run_id}:promoted"
            await run.tools["scratchpad"].put(run.tenant_id, run.session_id, entries, operation=operation)
        return {"preferences": sorted((*run.data["learnt"], *(preference.key for preference in notes)))}

    async def _notes(
        self, run: RunContext, known: list[Preference]
    ) -> tuple[tuple[Entry, ...], tuple[Preference, ...]]:
        """Return the promoted entries, marked as promoted, and the resulting notes."""
        pad, bars = run.tools["scratchpad"], Bars.of(run.config)
        promoted: list[Entry] = []
        notes: list[Preference] = []
        for entry in select(await pad.read(run.tenant_id, run.session_id, touch=False), About.USER):
            text = (entry.text or "")[:LONGEST_TEXT]
            familiar = max((share_of(text, preference.text, empty=1.0) for preference in known), default=0.0)
            cause = find_cause(entry, familiar, bars)
            if cause is None or UNTRUSTED in entry.labels:
                continue
            preference = Preference(
                key=name_note(text),
                kind=PreferenceKind.NOTE,
                source=Source.INFERRED,
                text=text,
                labels=entry.labels,
                origin=describe_origin(entry, run.run_id, str(run.session_id), cause),
            )
            notes.append(preference)
            promoted.append(with_data(entry, {PROMOTED: preference.key}))
        return tuple(promoted), tuple(notes)


def find_habits(uses: list[SlotUse], seen: int, share: float, origin: JsonObject) -> list[Preference]:
    """Return a rule with the key ``dact.slot`` for each slot that usually has the same value.

    The value must occur at least `seen` times, and in at least the fraction `share` of the slot's uses.
    `uses`: grouped by slot, with the most frequent value first. `origin`: facts to add to each rule's origin.
    """
    habits: list[Preference] = []
    for (dact, slot), group in groupby(uses, key=lambda use: (use.dact, use.slot)):
        values = list(group)
        first, total = values[0], sum(use.times for use in values)
        if first.times >= seen and first.times >= share * total:
            habits.append(
                Preference(
                    key=f"{dact}.{slot}",
                    kind=PreferenceKind.RULE,
                    source=Source.HABIT,
                    value=first.value,
                    text=f"{_plain(slot)}: usually {first.value}, for “{_plain(dact)}”"[:LONGEST_TEXT],
                    origin={**origin, "seen": first.times, "of": total},
                )
            )
    return habits


def find_playbooks(uses: list[SlotUse], seen: int, origin: JsonObject) -> list[Preference]:
    """Return a playbook for each task done at least `seen` times, with its slots and their usual values.

    `uses`: grouped by task and slot, with the most frequent value first. `origin`: the playbooks' origin.
    """
    playbooks: list[Preference] = []
    for dact, group in groupby(uses, key=lambda use: use.dact):
        slots: dict[str, list[SlotUse]] = {}
        for use in group:
            slots.setdefault(use.slot, []).append(use)
        times = max(sum(use.times for use in values) for values in slots.values())
        if times < seen:
            continue
        usual = {slot: values[0].value for slot, values in slots.items() if values[0].times >= seen}
        playbooks.append(
            Preference(
                key=f"playbook.{dact}",
                kind=PreferenceKind.PLAYBOOK,
                source=Source.HABIT,
                value={"flow": dact, "completed": times, "gives": sorted(slots), "usually": usual},
                text=f"{_plain(dact)}: done {times} times, with {', '.join(map(_plain, sorted(slots)))}"[
                    :LONGEST_TEXT
                ],
                origin=origin,
            )
        )
    return playbooks


def _plain(name: str) -> str:
    return name.replace("_", " ")
