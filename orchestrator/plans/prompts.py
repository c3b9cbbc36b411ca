"""Puts the questions about plans to models: their data, and the schemas of the answers. Judges nothing."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.plan_step import PlanStep
from orchestrator.plans.drafts import catalogue
from orchestrator.types import Json, JsonObject

DECOMPOSE, ALTERNATIVES, SCORE = "plan_decompose", "plan_alternatives", "plan_score"
REPLAN, COMPLETE = "plan_replan", "plan_complete"
MOST_HISTORY = 7


def _object(required: list[str], **properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required}


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


_TEXT: JsonObject = {"type": "string"}
_STEPS = _list(_object(["dact"], dact=_TEXT, slots={"type": "object"}, needs=_list(_TEXT), purpose=_TEXT))
DECOMPOSITION = _object(["steps"], steps=_STEPS)
SEVERAL = _object(["plans"], plans=_list(DECOMPOSITION))
SCORED = _object(
    ["judgements"], judgements=_list(_object(["score"], score={"type": "number"}, faults=_list(_TEXT)))
)
REPLANNING = _object(["decision"], decision={"enum": ["keep", "change", "stop"]}, steps=_STEPS, reason=_TEXT)
COMPLETION = _object(["complete"], complete={"type": "boolean"}, missing=_list(_TEXT), summary=_TEXT)


def frame_question(context: TurnContext) -> dict[str, Json]:
    """Begin a question about a plan."""
    domain = context.world.domain
    return {
        "assistant": f"{domain.config.persona.name}. {domain.config.description}".strip(),
        "today": datetime.fromtimestamp(context.now, UTC).strftime("%A, %Y-%m-%d"),
        "flows": [_show_flow(flow) for flow in catalogue(domain.flows).values()],
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
    """Show what the steps that ended in this turn found, or why they failed."""
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


def _show_flow(flow: type[BaseFlow]) -> JsonObject:
    spec = flow.spec
    return {
        "dact": spec.dact,
        "intent": spec.intent,
        "description": spec.description,
        "slots": [{"name": name} for name in spec.slots],
        "outputs": list(spec.outputs),
    }
