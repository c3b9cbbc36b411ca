"""Wait for background flows that gather context during recovery (PX-16) or update a summary or memories (IF-13).

A turn waits briefly for context. If nothing arrives, the turn parks the flow and ends. A system turn delivers the
findings later.
"""

from orchestrator.agent.modules import Modules
from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import AWAITING_CONTEXT
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.specification import Freshness, Kept, WhenStale
from orchestrator.errors import FailureCategory
from orchestrator.memory.notes import LONGEST, Note, NoteKind
from orchestrator.pex.execution import Failed, Recovery
from orchestrator.ports.memory.context import HAND_OVER_CONTEXT, ContextGathering, ContextQuestion, Findings
from orchestrator.ports.summary_refresh import SUMMARY_DUE
from orchestrator.telemetry import SignalType
from orchestrator.tools.trifecta import join_labels
from orchestrator.turns.lease import OutboxEntry
from orchestrator.types import JsonObject, copy_json, is_list

SHARE_OF_TURN = 0.5
"""Maximum share of a turn's remaining time to spend waiting for context, a summary or memories."""


async def gather(context: TurnContext, modules: Modules, flow: BaseFlow, failure: Failed) -> bool | None:
    """Gather context for a failed flow. Return whether context was found, or None if the flow was parked."""
    gathering = modules.ports.gather
    assert gathering is not None, "PEX chooses this step only if context can be gathered"
    run_id = await gathering.begin(_ask(context, flow, failure))
    config, left = context.world.domain.config.resilience, context.deadline - modules.ports.clock()
    within_s = max(0.0, min(config.context_in_turn_s, config.context_wait_s, left * SHARE_OF_TURN))
    findings = await gathering.wait(context.ids.tenant_id, run_id, within_s)
    if findings is not None:
        return await take_findings(context, flow, findings)
    if config.context_wait_s <= config.context_in_turn_s:
        return await take_findings(context, flow, Findings())
    _park(context, flow, failure, run_id, context.now + config.context_wait_s)
    return None


def _ask(context: TurnContext, flow: BaseFlow, failure: Failed) -> ContextQuestion:
    """Return a question that asks background flows for missing slots and empty slots that the failure names."""
    named = failure.evidence.get("slots")
    listed = named if is_list(named) else []
    wanted = [slot.name for slot in flow.missing()]
    wanted += [name for name in listed if name in flow.spec.slots]
    return ContextQuestion(
        tenant_id=context.ids.tenant_id,
        session_id=context.ids.session_id,
        user_id=context.ids.user_id,
        turn_id=context.ids.turn_id,
        flow_id=flow.flow_id,
        domain=context.world.domain.name,
        dact=flow.dact,
        question=f"{failure.message} {context.text}".strip(),
        slots={name: flow.spec.slots[name].description for name in wanted if flow.value(name) is None},
        known=copy_json(flow.values()),
    )


def _park(context: TurnContext, flow: BaseFlow, failure: Failed, run_id: str, until: float) -> None:
    why = {"category": failure.category.value, "message": str(failure.message), "evidence": failure.evidence}
    flow.progress.wait_for({"run_id": run_id, "until": until, "failure": why})
    context.state.stack.park(flow, context.now, AWAITING_CONTEXT)
    context.tell(NoticeKind.LOOKING, flow_id=flow.flow_id)
    parameters: JsonObject = {"flow_id": flow.flow_id, "run_id": run_id}
    context.changes.outbox.append(
        OutboxEntry(
            "internal_flow",
            {"flow": HAND_OVER_CONTEXT, "after": run_id, "slot": run_id, "parameters": parameters},
        )
    )


async def take_findings(context: TurnContext, flow: BaseFlow, findings: Findings) -> bool:
    """Write the findings to the scratchpad and fill empty slots. Return True if there were any findings."""
    labels = {name: value for name, value in findings.values().items() if flow.value(name) is None}
    problems = flow.fill_slots_by_label(labels, turn_id=context.ids.turn_id, source=SlotSource.MEMORY)
    refused = {problem.slot for problem in problems}
    for finding in findings.found:
        join_labels(context.state, finding.labels, f"findings from {finding.source}")
        text = f"Found in {finding.source}: {finding.text}"[:LONGEST]
        await context.recall.notes.write(
            flow, Note(text, flow.dact, context.state.turn, finding.labels, NoteKind.RESULT)
        )
    flow.progress.note_gathered(flow.values())
    filled = sorted(set(labels) - refused)
    context.log.signal(
        "agent",
        SignalType.RECOVERY,
        flow.flow_id,
        rung=Recovery.GATHERED,
        found=len(findings.found),
        filled=filled,
    )
    context.log.event("context_gathered", flow_id=flow.flow_id, found=len(findings.found), filled=filled)
    return bool(findings.found)


async def end_waiting(
    context: TurnContext, gathering: ContextGathering, flow: BaseFlow, *, late: bool
) -> bool | None:
    """End a parked flow's wait if its findings have arrived or its time limit has passed.

    `late`: True to end the wait even if the search is unfinished. Return whether there were findings, or None
    if the flow keeps waiting.
    """
    waiting = flow.progress.waits_for
    assert waiting is not None
    findings = await gathering.wait(context.ids.tenant_id, waiting["run_id"], 0.0)
    if findings is None and not late and context.now < waiting["until"]:
        return None
    found = await take_findings(context, flow, findings or Findings())
    flow.progress.wait_for(None)
    context.state.stack.unpark(flow, context.now)
    return found


def why_it_waited(flow: BaseFlow) -> Failed:
    assert flow.progress.waits_for is not None
    failure = flow.progress.waits_for["failure"]
    return Failed(
        FailureCategory(failure["category"]), failure["message"], uncertain=True, evidence=failure["evidence"]
    )


async def resume_waiting(context: TurnContext, gathering: ContextGathering) -> None:
    """End the wait of each flow whose findings have arrived or whose time limit has passed."""
    for flow in find_waiting(context):
        await end_waiting(context, gathering, flow, late=False)


def find_waiting(context: TurnContext) -> list[BaseFlow]:
    flows = context.state.stack.flows
    return [flow for flow in flows if flow.status == AWAITING_CONTEXT and flow.progress.waits_for is not None]


STALE = "stale"
"""The name of the result flag that lists which data is outdated: summary or memory."""


async def ensure_fresh(context: TurnContext, modules: Modules, flow: BaseFlow) -> None:
    """Refresh an outdated summary or outdated memories that the flow needs, once per flow and turn.

    If they stay outdated, flag them in the result. If the flow is configured only to flag them, request a
    refresh in the background instead of waiting for one.
    """
    needed = flow.spec.freshness
    if needed is None or flow.flow_id in context.changes.refreshed:
        return
    context.changes.refreshed.add(flow.flow_id)
    age = context.state.turn - 1 - await _known_through(context, modules, needed)
    if age > needed.turns and needed.otherwise is not WhenStale.FLAG:
        age = context.state.turn - 1 - await _renew(context, modules, flow, needed)
    ok = age <= needed.turns
    context.log.signal("agent", SignalType.CHECK, flow.flow_id, check="freshness", ok=ok, age=age)
    if ok:
        return
    context.log.flags[STALE] = [*context.log.flags.get(STALE, ()), needed.of.value]
    if needed.otherwise is WhenStale.FLAG:
        context.changes.outbox.append(OutboxEntry("internal_flow", {"trigger": SUMMARY_DUE}))


async def _known_through(context: TurnContext, modules: Modules, needed: Freshness) -> int:
    if needed.of is Kept.SUMMARY:
        return context.state.history.summarized_through
    if modules.ports.summary_refresh is None:
        return 0
    return await modules.ports.summary_refresh.remembered_through(
        context.ids.tenant_id, context.ids.session_id
    )


async def _renew(context: TurnContext, modules: Modules, flow: BaseFlow, needed: Freshness) -> int:
    """Refresh the summary or memories.

    Return the last turn that they cover, or 0 if they cannot be refreshed in time.
    """
    if modules.ports.summary_refresh is None:
        return 0
    left_s = max(0.0, context.deadline - modules.ports.clock())
    renewed = await modules.ports.summary_refresh.renew(
        context.ids.tenant_id,
        context.ids.session_id,
        memory=needed.of is Kept.MEMORY,
        key=f"freshness:{context.ids.turn_id}:{flow.flow_id}",
        here=needed.otherwise is WhenStale.INLINE,
        wait_s=min(needed.wait_s, left_s * SHARE_OF_TURN),
    )
    if renewed is None:
        return 0
    known = context.state.history.summarized_through
    if renewed.summary is not None and known < renewed.through_turn:
        context.state.summarize(renewed.summary, renewed.through_turn)
    return renewed.through_turn
