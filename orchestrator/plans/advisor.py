"""Model calls for planning: decomposition, alternatives and their scores, replanning, and the goal check.

If the model fails, the turn is marked as degraded, and the planner's rules decide.
"""

from collections.abc import Sequence
from itertools import chain, repeat

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.specification import FlowSpec
from orchestrator.models.engineer import PromptEngineer
from orchestrator.pex.skills.components import read_notes
from orchestrator.plans.answer_schemas import (
    COMPLETION,
    COMPLETION_SCHEMA,
    DECOMPOSITION,
    JUDGEMENTS,
    LONGEST_REASON,
    MOST_FAULTS,
    REPLANNING,
    SEVERAL,
    decomposition_schema,
    judgements_schema,
    replanning_schema,
    several_schema,
)
from orchestrator.plans.drafts import Draft, Ground, Refused, catalogue, check_draft
from orchestrator.plans.tree_search import Judgement, Search, Task, search
from orchestrator.ports.language_model import MODEL_FAILURES
from orchestrator.types import Json, JsonObject

_NOTHING = Draft(())
MOST_LESSONS = 9
MOST_NOTES = 8

DECOMPOSE, ALTERNATIVES, SCORE = "plan_decompose", "plan_alternatives", "plan_score"
REPLAN, COMPLETE = "plan_replan", "plan_complete"
MOST_HISTORY = 7


class Advisor:
    """Model calls for planning. `engineer`: None to disable. `ground`: converts a model's values to slot values."""

    def __init__(self, engineer: PromptEngineer | None, ground: Ground) -> None:
        self._engineer = engineer
        self._ground = ground

    @property
    def available(self) -> bool:
        return self._engineer is not None and self._engineer.available

    def check_draft(
        self, body: JsonObject, plan: PlanFlow, context: TurnContext, room: int
    ) -> Draft | Refused:
        """Validate a model's decomposition. `room`: maximum number of steps."""
        ended = (*context.state.completed, *context.changes.finished)
        done = {flow.flow_id: flow.values() for flow in ended}
        flows = context.world.domain.flows
        return check_draft(body, plan, flows, self._ground, room, context.local_now, done)

    async def decompose(self, plan: PlanFlow, context: TurnContext, room: int) -> Draft | Refused | None:
        """Request a decomposition, with a second attempt after a rejection.

        Return None if the model does not answer the first time, or the rejection if the second attempt
        fails.
        """
        problems: tuple[str, ...] = ()
        draft: Draft | Refused | None = None
        for _ in range(2):
            question = _ask_for_steps(plan, context, room, problems)
            schema = decomposition_schema(_specs(context), _names(plan), room)
            body = await self._ask(DECOMPOSE, question, schema, DECOMPOSITION, context)
            if body is None:
                return draft
            draft = self.check_draft(body, plan, context, room)
            if isinstance(draft, Draft):
                return draft
            problems = draft.reasons
        return draft

    async def search(self, first: Draft, plan: PlanFlow, context: TurnContext, room: int) -> Search[Draft]:
        """Search for a better decomposition than `first`, of up to `room` steps (PL-5). Return the finished search."""
        config = context.world.domain.config.plans
        about = {**_frame_question(context), "goal": plan.goal or context.text, "known": plan.values()}

        async def expand(draft: Draft, lessons: Sequence[Sequence[str]], width: int) -> list[Draft]:
            found = [first] if draft is _NOTHING else []
            question: dict[str, Json] = {
                **about,
                "plan": draft.show(),
                "max_steps": room,
                "lessons": list(dict.fromkeys(chain.from_iterable(lessons)))[:MOST_LESSONS],
                "wanted": width - len(found),
            }
            if width > len(found):
                schema = several_schema(_specs(context), _names(plan), room, width - len(found))
                body = await self._ask(ALTERNATIVES, question, schema, SEVERAL, context)
                plans: list[JsonObject] = body["plans"] if body is not None else []
                drafts = [self.check_draft(one, plan, context, room) for one in plans]
                found += [draft for draft in drafts if isinstance(draft, Draft)]
            return found

        async def judge(drafts: Sequence[Draft]) -> list[Judgement]:
            question = {**about, "plans": [draft.show() for draft in drafts]}
            body = await self._ask(SCORE, question, judgements_schema(len(drafts)), JUDGEMENTS, context)
            found = [_read_judgement(entry) for entry in body["judgements"]] if body is not None else []
            return [*found, *repeat(Judgement(0.0), len(drafts))][: len(drafts)]

        task = Task(root=_NOTHING, expand=expand, judge=judge, key=Draft.key)
        return await search(
            task,
            calls=config.tree_model_calls,
            width=config.tree_candidates,
            variants=config.tree_variants,
        )

    async def replan(self, plan: PlanFlow, context: TurnContext, room: int) -> JsonObject | None:
        """Return the model's advice on the remaining steps, or None if the model fails (PL-2).

        `room`: maximum number of steps.
        """
        question: dict[str, Json] = {
            **_frame_question(context),
            "max_steps": room,
            "goal": plan.goal,
            "done": _show_steps(plan, finished=True),
            "remaining": _show_steps(plan, finished=False),
            "result": _show_findings(plan, context),
            "notes": await _read_notes(context),
        }
        schema = replanning_schema(_specs(context), _names(plan), room)
        return await self._ask(REPLAN, question, schema, REPLANNING, context)

    async def judge(self, plan: PlanFlow, context: TurnContext) -> JsonObject | None:
        """Return the model's judgment on whether the plan's goal is met, or None if the model fails (PL-3)."""
        question: dict[str, Json] = {
            "assistant": _frame_question(context)["assistant"],
            "goal": plan.goal,
            "done": _show_steps(plan, finished=True),
            "notes": await _read_notes(context),
        }
        return await self._ask(COMPLETE, question, COMPLETION_SCHEMA, COMPLETION, context)

    async def _ask(
        self,
        prompt_id: str,
        question: dict[str, Json],
        schema: JsonObject,
        judged_by: JsonObject,
        context: TurnContext,
    ) -> JsonObject | None:
        if self._engineer is None or not self._engineer.can_answer(prompt_id):
            return None
        try:
            return await self._engineer.structured(
                prompt_id, question, schema, context.call, judged_by=judged_by
            )
        except MODEL_FAILURES as error:
            context.log.degrade(error.code)
            return None


def _specs(context: TurnContext) -> list[FlowSpec]:
    return [flow.spec for flow in catalogue(context.world.domain.flows).values()]


def _names(plan: PlanFlow) -> list[str]:
    return [step.name for step in plan.steps]


async def _read_notes(context: TurnContext) -> list[str]:
    """Return the latest scratchpad entries, including entries from flows that ended in this turn."""
    earlier = await read_notes(context, MOST_NOTES)
    own: list[str] = [note["text"] for flow in context.changes.finished for note in flow.progress.scratchpad]
    return [*dict.fromkeys([*earlier, *own])][-MOST_NOTES:]


def _read_judgement(body: JsonObject) -> Judgement:
    faults: list[str] = body.get("faults", [])
    return Judgement(float(body["score"]), tuple(fault[:LONGEST_REASON] for fault in faults[:MOST_FAULTS]))


def _frame_question(context: TurnContext) -> dict[str, Json]:
    """Return the variables that the planning prompts share."""
    domain = context.world.domain
    return {
        "assistant": f"{domain.config.persona.name}. {domain.config.description}".strip(),
        "today": context.today,
        "flows": [_show_flow(flow) for flow in catalogue(domain.flows).values()],
    }


def _ask_for_steps(
    plan: PlanFlow, context: TurnContext, room: int, problems: tuple[str, ...]
) -> dict[str, Json]:
    return {
        **_frame_question(context),
        "max_steps": room,
        "utterance": plan.goal or context.text,
        "history": [
            {"role": message.role, "text": message.text}
            for message in context.state.history.messages[-MOST_HISTORY:]
        ],
        "known": plan.values(),
        "done": _show_steps(plan, finished=True),
        "problems": list(problems),
    }


def _show_steps(plan: PlanFlow, *, finished: bool) -> list[JsonObject]:
    return [_show_step(step) for step in plan.steps if step.is_finished is finished]


def _show_findings(plan: PlanFlow, context: TurnContext) -> list[JsonObject]:
    """Return the steps that ended in this turn, with their outcomes and outputs."""
    ended = {flow.flow_id for flow in context.changes.finished}
    return [_show_step(step) for step in plan.steps if step.flow_id in ended]


def _show_step(step: PlanStep) -> JsonObject:
    body: JsonObject = {"dact": step.dact, "purpose": step.label}
    if step.is_finished:
        body["outcome"] = "done" if step.is_done else str(step.note) or f"not done ({step.status})"
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
