"""Choose a failed flow's recovery step, which the Agent executes (PX-16).

The recovery ladder is: retry once, gather context, reroute, ask the user. A fallback flow bypasses the ladder. If a
tool rejects a value, the user is asked directly, because only the user can provide another value.
"""

from __future__ import annotations

from orchestrator.dialogue.consent import drop_candidate
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import ChangeWhat, Option
from orchestrator.dialogue.slots import SlotSource
from orchestrator.errors import FailureCategory
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, Failed, NeedsInput, Proposal, Recover, Recovery
from orchestrator.pex.steps.invoke import NO_MODEL
from orchestrator.pex.steps.review import ask_for
from orchestrator.saying import say
from orchestrator.telemetry import SignalType

ABOUT_VALUES = frozenset({FailureCategory.NOT_FOUND, FailureCategory.VALIDATION_ERROR})


async def recover(policy: Choices, run: Execution, failure: Failed) -> Ending:
    """Return the ending that follows a failure: a recovery step, a question, or the failure itself."""
    if failure.check == NO_MODEL and run.flow.spec.fallback is not None:
        return Recover(Recovery.FALLBACK, failure, run.flow.spec.fallback)
    if failure.check is not None:
        return failure
    ending = _choose(run, policy, failure)
    if isinstance(ending, NeedsInput):  # the Agent signals the other steps
        category = failure.category.value
        run.context.log.signal(
            "pex", SignalType.RECOVERY, run.flow.flow_id, rung=Recovery.ASK_AGAIN, category=category
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
    """Fill slots with the tool's alternative inputs. Return False if the values are the same as before."""
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


def _next_rung(run: Execution) -> Proposal:
    """Return the next recovery step after the retry. Each step runs at most once per turn.

    Context is gathered only if background flows are available, and only once for the same values.
    """
    known = run.flow.progress.gathered_for
    if run.context.recall.can_gather and known != run.flow.values() and _climb(run, Recovery.GATHER):
        return Recovery.GATHER
    return Recovery.REROUTE if _climb(run, Recovery.REROUTE) else Recovery.ESCALATE


def _climb(run: Execution, rung: Recovery) -> bool:
    """Mark a recovery step as used. Return False if this flow has already used the step in this turn."""
    step = (run.flow.flow_id, rung.value)
    if step in run.context.changes.climbed:
        return False
    run.context.changes.climbed.add(step)
    return True


def _values_of_user(run: Execution) -> list[str]:
    """Return the slots whose values come from the user, an earlier flow or memory."""
    given = (SlotSource.USER, SlotSource.INHERITED, SlotSource.MEMORY)
    return [name for name, slot in run.flow.slots.items() if slot.source in given]


def _tell(run: Execution, failure: Failed) -> None:
    run.context.tell(
        NoticeKind.FAILED, dact=run.flow.spec.dact, category=failure.category.value, message=failure.message
    )


def _ask_again(run: Execution, failure: Failed) -> NeedsInput:
    """Report the failure. If there is only one value, ask for it again; otherwise, ask which value to change."""
    flow = run.flow
    _tell(run, failure)
    drop_candidate(flow)
    names = _values_of_user(run)
    if len(names) == 1:
        flow.clear(names[0])
        run.filled = frozenset()
        return ask_for(run, names[0])
    options = tuple(
        Option(
            say("change", slot=name.replace("_", " ")),
            "change_slot",
            {"flow_id": flow.flow_id, "slot": name},
        )
        for name in names
    )
    question = ChangeWhat(flow_id=flow.flow_id, options=options)
    run.context.state.ambiguity.declare(question)
    return NeedsInput()
