"""Chooses what to do when a flow could not be carried out (PX-16), and returns; the Agent acts.

The ladder: retry once, gather context, re-route, ask the user. A hard-coded fallback bypasses it. A
value that a tool turned away is asked for again, which is the user's rung reached early because
nothing else could know better.
"""

from __future__ import annotations

from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.slots import SlotSource
from orchestrator.errors import FailureCategory
from orchestrator.pex.calls.consent import drop_candidate
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, Failed, NeedsInput, Recover, Recovery, Rung
from orchestrator.pex.steps.invoke import NO_MODEL
from orchestrator.pex.steps.review import ask_for
from orchestrator.telemetry import SignalType

# In a flow's notes: the values with which context was gathered for it.
GATHERED = "gathered"

ABOUT_VALUES = frozenset({FailureCategory.NOT_FOUND, FailureCategory.VALIDATION_ERROR})


async def recover(policy: Choices, run: Execution, failure: Failed) -> Ending:
    """Choose the way out of a failure."""
    if failure.check == NO_MODEL and run.flow.spec.fallback is not None:
        return Recover(Recovery.FALLBACK, failure, run.flow.spec.fallback)
    if failure.check is not None:
        return failure
    ending = _choose(run, policy, failure)
    if isinstance(ending, NeedsInput):  # a rung that somebody else climbs is signalled there
        category = failure.category.value
        run.context.log.signal(
            "pex", SignalType.RECOVERY, run.flow.flow_id, rung=Rung.ASK_AGAIN, category=category
        )
    return ending


def _choose(run: Execution, policy: Choices, failure: Failed) -> NeedsInput | Recover:
    if failure.alternative and _climb(run, Recovery.RETRY) and _take_alternative(run, failure):
        _tell(run, failure)
        drop_candidate(run.flow)
        return Recover(Recovery.RETRY, failure)
    target = policy.fallback(run, failure)
    if target is not None:
        return Recover(Recovery.FALLBACK, failure, target)
    if (failure.uncertain or failure.retryable) and _climb(run, Recovery.RETRY):
        return Recover(Recovery.RETRY, failure)
    if failure.uncertain or failure.unusable:
        return Recover(_next_rung(run), failure)
    if failure.category in ABOUT_VALUES and _values_of_user(run):
        return _ask_again(run, failure)
    return Recover(Recovery.ESCALATE, failure)


def _take_alternative(run: Execution, failure: Failed) -> bool:
    """Fill in what would succeed, which is put to the user as the next candidate; False when it changes nothing."""
    before = run.flow.values()
    slots = {
        use.slot_mapping.get(name, name): value
        for use in run.flow.spec.tools
        for name, value in failure.alternative.items()
    }
    for name in run.flow.spec.slots:
        if name in slots:
            run.flow.take(name, slots[name], SlotSource.TOOL)
    return run.flow.values() != before


def _next_rung(run: Execution) -> Recovery:
    """Climb beyond the retry: each rung once in a turn, gathering only where somebody gathers, and once
    with the same values.
    """
    known = run.flow.notes.get(GATHERED)
    if run.context.recall.can_gather and known != run.flow.values() and _climb(run, Recovery.GATHER):
        return Recovery.GATHER
    return Recovery.REROUTE if _climb(run, Recovery.REROUTE) else Recovery.ESCALATE


def _climb(run: Execution, rung: Recovery) -> bool:
    """Take a rung, unless this flow has taken it in this turn."""
    step = (run.flow.flow_id, rung.value)
    if step in run.context.changes.climbed:
        return False
    run.context.changes.climbed.add(step)
    return True


def _values_of_user(run: Execution) -> list[str]:
    """Name filled slots that the user could have meant otherwise."""
    given = (SlotSource.USER, SlotSource.INHERITED, SlotSource.MEMORY)
    return [name for name, slot in run.flow.slots.items() if slot.source in given]


def _tell(run: Execution, failure: Failed) -> None:
    run.context.changes.remark(
        RemarkKind.FAILED, dact=run.flow.spec.dact, category=failure.category.value, message=failure.message
    )


def _ask_again(run: Execution, failure: Failed) -> NeedsInput:
    """Say what was wrong; ask for the one value anew, or which of several to change."""
    flow = run.flow
    _tell(run, failure)
    drop_candidate(flow)
    names = _values_of_user(run)
    if len(names) == 1:
        flow.clear(names[0])
        run.filled = frozenset()
        return ask_for(run, names[0])
    options = [
        Option(f"Change the {name.replace('_', ' ')}", "change_slot", {"flow_id": flow.flow_id, "slot": name})
        for name in names
    ]
    run.context.changes.state.ambiguity.declare(
        Level.PARTIAL,
        flow_id=flow.flow_id,
        options=options,
        turn_id=run.context.ids.turn_id,
        metadata={"about": "change"},
    )
    return NeedsInput()
