"""Asks a model about plans: decompositions, alternatives and their scores, replanning, completion.

A model that fails is None here, and noted: the rules decide then.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.models import PromptEngineer
from orchestrator.plans import prompts
from orchestrator.plans.drafts import Draft, Ground, Refused, check_draft
from orchestrator.plans.search import Judgement, Outcome, Task, search
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.types import Json, JsonObject

_NOTHING = Draft(())
MOST_LESSONS = 9
MOST_FAULTS = 3
MOST_NOTES = 8


class Advisor:
    def __init__(self, engineer: PromptEngineer | None) -> None:
        self._engineer = engineer

    @property
    def available(self) -> bool:
        return self._engineer is not None and self._engineer.available

    async def decompose(
        self, plan: PlanFlow, context: TurnContext, ground: Ground, room: int
    ) -> Draft | Refused | None:
        """A decomposition; a refused one is asked for once more, with what was wrong."""
        problems: tuple[str, ...] = ()
        draft: Draft | Refused | None = None
        for _ in range(2):
            question = prompts.ask_for_steps(plan, context, room, problems)
            body = await self._ask(prompts.DECOMPOSE, question, prompts.DECOMPOSITION, context)
            if body is None:
                return draft
            draft = check_draft(body, plan, context.world.domain.flows, ground, room, context.now)
            if isinstance(draft, Draft):
                return draft
            problems = draft.reasons
        return draft

    async def search(
        self, first: Draft, plan: PlanFlow, context: TurnContext, ground: Ground, room: int
    ) -> Outcome[Draft]:
        """Look for a better decomposition than the first (PL-5)."""
        config = context.world.domain.config.plans

        async def expand(draft: Draft, lessons: Sequence[Sequence[str]], width: int) -> list[Draft]:
            wanted = width - 1 if draft is _NOTHING else width
            found = await self._find_others(draft, lessons, wanted, plan, context, ground, room)
            return [first, *found] if draft is _NOTHING else found

        async def judge(drafts: Sequence[Draft]) -> list[Judgement]:
            question = {**self._about(plan, context), "plans": [draft.show() for draft in drafts]}
            body = await self._ask(prompts.SCORE, question, prompts.SCORED, context)
            entries = body["judgements"] if body is not None and is_list(body["judgements"]) else []
            found = [_read_judgement(entry) for entry in entries]
            return [*found, *repeat(Judgement(0.0), len(drafts))][: len(drafts)]

        task = Task(root=_NOTHING, expand=expand, judge=judge, key=Draft.key)
        return await search(
            task,
            calls=config.tree_model_calls,
            width=config.tree_candidates,
            variants=config.tree_variants,
        )

    async def _find_others(
        self,
        draft: Draft,
        lessons: Sequence[Sequence[str]],
        wanted: int,
        plan: PlanFlow,
        context: TurnContext,
        ground: Ground,
        room: int,
    ) -> list[Draft]:
        if wanted <= 0:
            return []
        question = {
            **self._about(plan, context),
            "plan": draft.show(),
            "max_steps": room,
            "lessons": list(dict.fromkeys(chain.from_iterable(lessons)))[:MOST_LESSONS],
            "wanted": wanted,
        }
        body = await self._ask(prompts.ALTERNATIVES, question, prompts.SEVERAL, context)
        bodies = body["plans"] if body is not None and is_list(body["plans"]) else []
        drafts = [
            check_draft(entry, plan, context.world.domain.flows, ground, room, context.now)
            for entry in bodies
            if is_object(entry)
        ]
        return [draft for draft in drafts if isinstance(draft, Draft)]

    def _about(self, plan: PlanFlow, context: TurnContext) -> dict[str, Json]:
        return {
            **prompts.frame_question(context),
            "goal": plan.goal or context.text,
            "known": plan.values(),
        }

    async def replan(
        self, plan: PlanFlow, context: TurnContext, room: int, news: Sequence[str] = ()
    ) -> JsonObject | None:
        """Ask what should become of the rest of a plan (PL-2)."""
        question: dict[str, Json] = {
            **prompts.frame_question(context),
            "max_steps": room,
            "goal": plan.goal,
            "done": prompts.show_steps(plan, finished=True),
            "remaining": prompts.show_steps(plan, finished=False),
            "result": prompts.show_findings(plan, context),
            "notes": [note.text for note in await context.recall.notes.read(MOST_NOTES)],
            "news": list(news),
        }
        return await self._ask(prompts.REPLAN, question, prompts.REPLANNING, context)

    async def judge(self, plan: PlanFlow, context: TurnContext) -> JsonObject | None:
        """Ask whether the goal is met (PL-3)."""
        question: dict[str, Json] = {
            "assistant": prompts.frame_question(context)["assistant"],
            "goal": plan.goal,
            "done": prompts.show_steps(plan, finished=True),
        }
        return await self._ask(prompts.COMPLETE, question, prompts.COMPLETION, context)

    async def _ask(
        self, prompt_id: str, question: dict[str, Json], schema: JsonObject, context: TurnContext
    ) -> JsonObject | None:
        if self._engineer is None or not self._engineer.can_answer(prompt_id):
            return None
        try:
            return await self._engineer.structured(prompt_id, question, schema, context.call)
        except MODEL_FAILURES as error:
            context.log.degrade(error.code)
            return None


def _read_judgement(body: Json) -> Judgement:
    """What cannot be read counts as nothing."""
    if not is_object(body) or not isinstance(score := body.get("score"), int | float):
        return Judgement(0.0)
    faults = body.get("faults")
    said = [str(fault)[:300] for fault in faults] if is_list(faults) else []
    return Judgement(float(score), tuple(said[:MOST_FAULTS]))
