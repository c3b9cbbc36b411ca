"""RES: answers from what happened in the turn, whichever policy ran (RS-1 … RS-7)."""

from __future__ import annotations

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.res.answer import Answer
from orchestrator.res.naturalize import Writer, naturalize
from orchestrator.res.steps.clarify import clarify
from orchestrator.res.steps.display import display
from orchestrator.res.steps.finish import finish
from orchestrator.res.steps.generate import tell_completed, tell_remark
from orchestrator.res.steps.start import start
from orchestrator.res.suggest import suggest
from orchestrator.res.templates import Templates
from orchestrator.telemetry import SignalType

LEADING = frozenset(
    {
        RemarkKind.ASSUMED,
        RemarkKind.BACK_TO,
        RemarkKind.CANCELLED,
        RemarkKind.CLEARED,
        RemarkKind.CORRECTED,
        RemarkKind.DECLINED,
        RemarkKind.FAILED,
        RemarkKind.INVALID_VALUE,
        RemarkKind.MADE_ROOM,
        RemarkKind.NOT_UNDERSTOOD,
        RemarkKind.NO_SUCH_STEP,
        RemarkKind.RESUMED,
        RemarkKind.STAYS,
        RemarkKind.NOT_APPROVED,
        RemarkKind.APPROVAL_OVER,
        RemarkKind.UNDONE,
        RemarkKind.UNKNOWN_OUTCOME,
    }
)
"""Remarks that a question may follow in the same paragraph."""


class RES:
    def __init__(self, templates: Templates, writer: Writer | None = None) -> None:
        """`writer`: a model that puts templates' words into speech; None leaves them as they are."""
        self._templates = templates
        self._writer = writer

    def start(self, context: TurnContext) -> None:
        """Take finished flows off the stack; sets `keep_going`."""
        start(context)

    async def respond(self, context: TurnContext) -> Answer:
        """What is done, what there is to say, and the open question last."""
        answer = Answer(frame=display(context, self._templates))
        self._generate(context, answer)
        self._note_limits(context, answer)
        await naturalize(context, answer, self._writer)
        clarify(context, answer, self._templates)
        suggest(context, answer)
        if not answer.message:
            answer.add(self._templates.render("anything_else"))
        finish(context, answer)
        context.log.signal("res", SignalType.TEMPLATE, templates=answer.templates)
        return answer

    def _generate(self, context: TurnContext, answer: Answer) -> None:
        for part in context.changes.messages:
            if isinstance(part, BaseFlow):
                if part.flow_id in context.changes.silent:
                    continue
                name, text = tell_completed(context, part, self._templates)
                answer.add(text, fixed=self._templates.is_fixed(name))
            else:
                name, text = tell_remark(context, part, self._templates)
                answer.add(text, leads=part.kind in LEADING, fixed=self._templates.is_fixed(name))
            answer.templates.append(name)

    def _note_limits(self, context: TurnContext, answer: Answer) -> None:
        """Say what a client cannot know by itself: a chart that is none, a model that did not serve (RS-5)."""
        note = answer.frame["block"]["note"] if answer.frame is not None else None
        if note:
            told = self._templates.render("warning", warning=note)
            if not any(told in part or part in told for part in answer.parts[-1:]):
                answer.add(told, fixed=True)
        if context.log.flags.get("degraded") and context.world.domain.config.generation.tell_degraded:
            text = self._templates.render("degraded")
            if not any(
                text in message.text for message in context.changes.state.messages if message.role == "agent"
            ):
                answer.add(text, fixed=True)
                answer.templates.append("degraded")

    def apologise(self, context: TurnContext, done: list[str]) -> Answer:
        """The safe message for an unexpected error (AG-4); `done`: what tools have done for good."""
        text = self._templates.render("breakdown", done=done)
        context.log.signal("res", SignalType.TEMPLATE, templates=["breakdown"])
        return Answer(parts=[text], templates=["breakdown"])
