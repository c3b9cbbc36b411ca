"""What models are asked about plans: the questions' data, and the shape of the answers. Judges nothing."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.plan_step import PlanStep
from orchestrator.domain.model import Domain
from orchestrator.plans.drafts import catalogue
from orchestrator.types import Json, JsonObject

DECOMPOSE, ALTERNATIVES, SCORE = "plan_decompose", "plan_alternatives", "plan_score"
REPLAN, COMPLETE = "plan_replan", "plan_complete"
MOST_HISTORY = 7

_STEP: JsonObject = {
    "type": "object",
    "properties": {
        "dact": {"type": "string"},
        "slots": {"type": "object"},
        "needs": {"type": "array", "items": {"type": "string"}},
        "purpose": {"type": "string"},
    },
    "required": ["dact"],
}
_STEPS: JsonObject = {"type": "array", "items": _STEP}

DECOMPOSITION: JsonObject = {"type": "object", "properties": {"steps": _STEPS}, "required": ["steps"]}
SEVERAL: JsonObject = {
    "type": "object",
    "properties": {"plans": {"type": "array", "items": DECOMPOSITION}},
    "required": ["plans"],
}
_JUDGEMENT: JsonObject = {
    "type": "object",
    "properties": {
        "score": {"type": "number"},
        "faults": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["score"],
}
SCORED: JsonObject = {
    "type": "object",
    "properties": {"judgements": {"type": "array", "items": _JUDGEMENT}},
    "required": ["judgements"],
}
REPLANNING: JsonObject = {
    "type": "object",
    "properties": {
        "decision": {"enum": ["keep", "change", "stop"]},
        "steps": _STEPS,
        "reason": {"type": "string"},
    },
    "required": ["decision"],
}
COMPLETION: JsonObject = {
    "type": "object",
    "properties": {
        "complete": {"type": "boolean"},
        "missing": {"type": "array", "items": {"type": "string"}},
        "summary": {"type": "string"},
    },
    "required": ["complete"],
}


def frame_question(context: TurnContext) -> dict[str, Json]:
    """What every question about a plan begins with."""
    domain = context.world.domain
    return {
        "assistant": f"{domain.config.persona.name}. {domain.config.description}".strip(),
        "today": datetime.fromtimestamp(context.now, UTC).strftime("%A, %Y-%m-%d"),
        "flows": _show_flows(domain),
    }


def ask_for_steps(
    plan: PlanFlow, context: TurnContext, room: int, problems: tuple[str, ...]
) -> dict[str, Json]:
    return {
        **frame_question(context),
        "max_steps": room,
        "utterance": plan.goal or context.text,
        "history": [
            {"role": message.role, "text": message.text}
            for message in context.changes.state.history.messages[-MOST_HISTORY:]
        ],
        "known": plan.values(),
        "done": show_steps(plan, finished=True),
        "problems": list(problems),
    }


def show_steps(plan: PlanFlow, *, finished: bool) -> list[JsonObject]:
    return [_show_step(step) for step in plan.steps if step.is_finished is finished]


def show_findings(plan: PlanFlow, context: TurnContext) -> list[JsonObject]:
    """What the steps that ended in this turn found, or why they failed."""
    ended = {flow.flow_id for flow in context.changes.finished}
    return [_show_step(step) for step in plan.steps if step.flow_id in ended]


def _show_step(step: PlanStep) -> JsonObject:
    body: JsonObject = {"dact": step.dact, "purpose": step.label}
    if step.is_finished:
        body["outcome"] = "done" if step.is_done else step.note or f"not done ({step.standing})"
        body["found"] = step.outputs
    else:
        body["slots"] = step.slots
        body["needs"] = list(step.needs)
    return body


def _show_flows(domain: Domain) -> list[JsonObject]:
    return [_show_flow(flow) for flow in catalogue(domain.flows).values()]


def _show_flow(flow: type[BaseFlow]) -> JsonObject:
    spec = flow.spec
    return {
        "dact": spec.dact,
        "intent": spec.intent,
        "description": spec.description,
        "slots": [{"name": name} for name in spec.slots],
        "outputs": list(spec.outputs),
    }
