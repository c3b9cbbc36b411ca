"""Review the slots (PX-4): fill slots without asking if possible, then ask for the first missing slot."""

from orchestrator.dialogue.base_flow import ValueFinder
from orchestrator.dialogue.changes.correction import find_too_early
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import AskSlot
from orchestrator.dialogue.slots import SlotSource
from orchestrator.memory.user_memory import assumable, say_where_from
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, NeedsInput
from orchestrator.pex.skills.components import note_labels
from orchestrator.ports.memory.preferences import Preference, Source
from orchestrator.saying import say
from orchestrator.tools.trifecta import join_labels
from orchestrator.types import JsonObject


async def review(_policy: Choices, run: Execution) -> Ending | None:
    """Fill slots from memory, recent turns and documents, then ask for the first missing slot."""
    flow = run.flow
    await _recall(run)
    if run.context.recall.recent_turns is not None and flow.needs_to_think():
        found = await _fill(run, recent_turns=run.context.recall.recent_turns)
        if found:
            run.context.tell(NoticeKind.SAID_BEFORE, flow_id=flow.flow_id, slots=found)
    await _look_up(run)
    if (too_early := _drop_too_early(run)) is not None:
        return ask_for(run, too_early)
    missing = flow.missing()
    if missing:
        return ask_for(run, missing[0].name)
    run.filled = frozenset(flow.slots)
    return None


def ask_for(run: Execution, slot: str) -> NeedsInput:
    question = AskSlot(flow_id=run.flow.flow_id, slot=slot)
    run.context.state.ambiguity.declare(question)
    return NeedsInput()


def _drop_too_early(run: Execution) -> str | None:
    """If two days are out of order, clear one, tell the user, and return its slot. Return None if all are in order.

    The end day is cleared, unless the user gave only that day or repeated both days (IR-4, AM-4).
    """
    flow = run.flow
    if not [slot for slot in flow.spec.slots.values() if slot.not_before]:
        return None
    values = flow.values()
    found = find_too_early(flow, values)
    if found is None:
        return None
    days: JsonObject = {name: values[name] for name in found}
    said = [name for name in found if name in flow.slots and flow.slots[name].source is SlotSource.USER]
    again = said == [found[0]] or (len(said) != 1 and flow.progress.out_of_order == days)
    flow.progress.note_out_of_order(days)
    run.context.tell(NoticeKind.TOO_EARLY, flow_id=flow.flow_id, slots=days)
    flow.clear(found[again])
    return found[again]


async def _recall(run: Execution) -> None:
    """Fill slots from preferences when a flow starts or follows a completed flow, and report the values.

    Optional slots are filled only with preferences that the user stated.
    """
    flow, preferences = run.flow, run.context.recall.preferences
    if preferences is None or (len(flow.turn_ids) > 1 and not run.context.changes.completed):
        return
    given = {spec.group for spec in flow.spec.slots.values() if spec.name in flow.slots} - {None}
    empty = [spec for spec in assumable(flow.spec) if spec.name not in flow.slots and spec.group not in given]
    if not empty:
        return
    needed = {spec.name for spec in flow.open_slots()}
    found = {
        name: preference
        for name, preference in (await preferences.rules(flow, empty)).items()
        if name in needed or preference.source is Source.EXPLICIT
    }
    if found:
        _assume(run, found)


async def _fill(
    run: Execution, recent_turns: ValueFinder | None = None, memory: ValueFinder | None = None
) -> JsonObject:
    """Fill open slots from the finders. Return the new values by slot."""
    flow, known = run.flow, frozenset(run.flow.slots)
    await flow.fill_slot_values(recent_turns, memory, turn_id=run.context.ids.turn_id)
    return {name: slot.value for name, slot in flow.slots.items() if name not in known}


async def _look_up(run: Execution) -> None:
    flow, finder = run.flow, run.context.recall.document_finder
    if finder is None or not flow.needs_to_think():
        return
    taken = await _fill(run, memory=finder)
    if not taken:
        return
    passages = [finder.sources[name] for name in taken]
    note_labels(run.context, passages)
    sources: JsonObject = {
        name: say("from_document", title=finder.sources[name].title or "") for name in taken
    }
    run.context.tell(NoticeKind.LOOKED_UP, flow_id=flow.flow_id, slots=taken, sources=sources)


def _assume(run: Execution, found: dict[str, Preference]) -> None:
    flow, context = run.flow, run.context
    values = {name: preference.value for name, preference in found.items()}
    flow.fill_slots_by_label(values, turn_id=context.ids.turn_id, source=SlotSource.MEMORY)
    taken = {name: flow.slots[name].value for name in found if name in flow.slots}
    for name in taken:
        join_labels(run.context.state, found[name].labels, "what I remember about you")
    if taken:
        sources: JsonObject = {name: say_where_from(found[name]) for name in taken}
        context.tell(NoticeKind.RECALLED, flow_id=flow.flow_id, slots=taken, sources=sources)
