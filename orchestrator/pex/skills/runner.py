"""Run skills: the prompt, the tool loop and its limits (PX-5, PX-6, PX-9).

The step `invoke` decides how a skill's outcome affects the flow.
"""

from dataclasses import dataclass, field

from orchestrator.dialogue.specification import Family
from orchestrator.domain.model import Domain, SkillSpec
from orchestrator.errors import (
    BudgetExceeded,
    FailureCategory,
    ModelContextExceeded,
    ModelFiltered,
    ModelOutputInvalid,
    ModelRefused,
    ModelUnavailable,
)
from orchestrator.memory.context_coordinator import ContextCoordinator
from orchestrator.models.calling import PublishCall
from orchestrator.models.engineer import PromptEngineer, tool_result
from orchestrator.models.schemas import bounded_text, closed, list_of
from orchestrator.models.structured import ToolsAnswer
from orchestrator.models.templates import encode_data
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, Failed
from orchestrator.pex.skill_outcome import (
    FINISH,
    Finish,
    Interrupted,
    SkillOutcome,
    Success,
    find_fault,
    name_outcome,
    read_end,
    read_outcome,
)
from orchestrator.pex.skills.calls import Calls, Clock, SkillTimedOut
from orchestrator.pex.skills.streamed import OpenWords, StreamedText
from orchestrator.ports.language_model import (
    MODEL_FAILURES,
    ChatMessage,
    ChatRole,
    ToolChoice,
)
from orchestrator.saying import say
from orchestrator.telemetry import SignalType
from orchestrator.tools.guardrails.apply import apply_guardrails
from orchestrator.tools.guardrails.verdict import RejectedCode
from orchestrator.tools.remembered import recall_for_prompt
from orchestrator.tools.toolbox import Tool
from orchestrator.types import Dact, Json, JsonObject

PROMPT = "pex_skill"
NOT_NOW = say("not_worked_out")
WITHHELD = say("withheld")
TOO_LONG = say("conversation_too_long")
CHANGING = frozenset({Family.TRANSFORM, Family.SCHEDULE})
TOO_SLOW = say("too_slow")


class SkillRunner:
    """A runner for one domain's skills. The state of a run is in a `_Loop`."""

    def __init__(self, domain: Domain, engineer: PromptEngineer, open_words: OpenWords) -> None:
        self._domain = domain
        self._open_words = open_words
        self._engineer = engineer
        self._finishes = {dact: Finish.of(skill) for dact, skill in domain.skills.items()}

    def can_run(self, dact: Dact) -> bool:
        return dact in self._domain.skills and self._engineer.can_answer(PROMPT)

    async def run(self, run: Execution, policy: Choices) -> SkillOutcome:
        """Run the flow's skill. Model errors and timeouts become failures."""
        dact = run.flow.dact
        skill = self._domain.skills[dact]
        found = {tool_id: run.tools.find(tool_id) for tool_id in skill.tools}
        tools: dict[str, Tool] = {name: tool for name, tool in found.items() if tool is not None}
        calls = Calls(run, policy, tools, skill.components, self._start_clock(run, tools))
        loop = _Loop(run, policy, skill, self._engineer, calls, self._finishes[dact], self._open_words)
        try:
            outcome = await loop.go()
        except SkillTimedOut:
            outcome = Failed(FailureCategory.TIMEOUT, TOO_SLOW)
        except MODEL_FAILURES as error:
            run.context.log.degrade(error.code)
            run.context.log.failed_check("pex", "skill", f"{error.code}: {error}", run.flow.flow_id)
            outcome = _failure_of(error)
        name = name_outcome(outcome)
        if name != "success" and loop.streamed is not None:
            await loop.streamed.take_back()
        run.context.log.signal(
            "pex",
            SignalType.CHECK,
            run.flow.flow_id,
            check="skill",
            ok=name != "failure",
            outcome=name,
            rounds=loop.rounds,
            calls=calls.made,
        )
        return outcome

    def _start_clock(self, run: Execution, tools: dict[str, Tool]) -> Clock:
        """Start a clock that allows the tools' timeouts plus the configured overhead.

        The clock ends no later than the turn's deadline.
        """
        tools_ms = sum(tool.spec.timeout_ms for tool in tools.values())
        allowed_s = (tools_ms + self._domain.config.resilience.skill_overhead_ms) / 1000
        return Clock(allowed_s, run.context.call.deadline)


def _failure_of(error: ModelUnavailable | ModelOutputInvalid | BudgetExceeded) -> Failed:
    match error:
        case ModelFiltered() | ModelRefused():
            message = WITHHELD
        case ModelContextExceeded():
            message = TOO_LONG
        case _:
            message = NOT_NOW
    retryable = isinstance(error, ModelOutputInvalid) and not error.final
    return Failed(FailureCategory.SERVER_ERROR, message, retryable=retryable, final=error.final)


@dataclass(slots=True)
class _Loop:
    """One run of a skill: ask the model, make its calls and report the results, until the skill ends."""

    run: Execution
    policy: Choices
    skill: SkillSpec
    engineer: PromptEngineer
    calls: Calls
    finish: Finish
    open_words: OpenWords
    streamed: StreamedText | None = None
    transcript: list[ChatMessage] = field(default_factory=list[ChatMessage])
    rounds: int = 0
    draft: Success | None = None
    """A valid result under revision, which is used if the revision fails."""

    async def go(self) -> SkillOutcome:
        agreed = await self.calls.make_agreed()
        if isinstance(agreed, Interrupted):
            return agreed
        subject = f"{self.run.context.text} {self.run.flow.title}"
        variables = self._variables(agreed, await recall_for_prompt(self.run.context, subject))
        most = self.run.context.world.domain.config.resilience.skill_rounds
        while self.rounds < most:
            self.rounds += 1
            answer = await self._ask(variables, last=self.rounds == most)
            if answer is None:
                break
            body = read_end(answer)
            if body is not None:
                outcome = await self._end(answer, body)
                if outcome is not None:
                    return outcome
                continue
            interrupted = await self._make_calls(answer)
            if interrupted is not None:
                return interrupted
        return self.draft or Failed(FailureCategory.SERVER_ERROR, NOT_NOW)

    async def _ask(self, variables: dict[str, Json], *, last: bool) -> ToolsAnswer | None:
        """Request the next step from the model. Return None if the model fails or is too slow but a draft exists."""
        # The last step offers the same tools, because they are part of the provider's cached prefix.
        offered = (*self.calls.definitions, self.finish.definition)
        context, clock = self.run.context, self.calls.clock
        publish = await self._begin_stream()
        call = context.call.for_flow(self.run.flow.flow_id)
        try:
            async with clock.limit():
                return await self.engineer.tools(
                    PROMPT,
                    variables,
                    offered,
                    call,
                    transcript=tuple(self.transcript),
                    tool_choice=FINISH if last else ToolChoice.REQUIRED,
                    find_fault=lambda answer: find_fault(answer, self.finish, last=last),
                    publish=publish,
                )
        except (*MODEL_FAILURES, SkillTimedOut):
            if self.draft is None:
                raise
            return None

    async def _begin_stream(self) -> PublishCall | None:
        """Withdraw any streamed text. Return a callback to stream the next answer, or None if it isn't streamed."""
        context, name = self.run.context, self.skill.stream
        if self.streamed is not None:
            await self.streamed.take_back()
        if context.live is None or name is None:
            return None
        words = self.open_words(context, "", lambda text: self.policy.find_fault_in_text(self.run, text))
        self.streamed = StreamedText(words, name)
        return self.streamed.take

    async def _make_calls(self, answer: ToolsAnswer) -> Interrupted | None:
        self.transcript.append(answer.reply)
        for request in answer.calls:
            result = await self.calls.make(request)
            if isinstance(result, Interrupted):
                return result
            self.transcript.append(tool_result(request.id, result))
        return None

    async def _end(self, answer: ToolsAnswer, body: JsonObject) -> SkillOutcome | None:
        """Return the outcome, or None if the model must correct its answer."""
        outcome = read_outcome(body, self.calls.failed)
        if isinstance(outcome, Failed) or outcome.warning is not None:
            return outcome
        fault = self._find_fault(outcome.data)
        if fault is not None:
            self._send_back(answer, [fault])
            return None
        if self.draft is not None or not (self.skill.reflect and self.skill.criteria):
            return outcome
        self.draft = outcome
        faults = await _find_faults(self.run, self.skill, self.engineer, self.calls.clock, outcome.data)
        if not faults:
            return outcome
        self._send_back(answer, faults)
        return None

    def _find_fault(self, data: JsonObject) -> str | None:
        rejected = self._check_code(data)
        if rejected is not None:
            return f"{rejected.category.value}: {rejected.message}"
        if self._claims_too_much():
            return "nothing was done: the required tool was not called, or it failed"
        return self.policy.find_fault(self.run, data)

    def _claims_too_much(self) -> bool:
        """Return whether the flow should change something, but none of the skill's calls had a side effect."""
        if self.run.flow.spec.family not in CHANGING:
            return False
        changes = any(tool.has_effect for tool in self.calls.tools.values())
        return changes and not self.calls.changed

    def _check_code(self, data: JsonObject) -> RejectedCode | None:
        """Apply guardrails to the result's code, which is only displayed. Return the rejection, or None."""
        code = data.get("code")
        if self.skill.language is None or not isinstance(code, str):
            return None
        verdict = apply_guardrails(
            code,
            self.skill.language,
            self.policy.entities(self.run),
            allowed_imports=self.run.tools.allowed_imports,
        )
        if isinstance(verdict, RejectedCode):
            return verdict
        self.run.code = data["code"] = verdict.code
        return None

    def _send_back(self, answer: ToolsAnswer, faults: list[str]) -> None:
        feedback: JsonObject = {
            "accepted": False,
            "faults": list(faults),
            "next": "correct this, then finish",
        }
        self.transcript.append(answer.reply)
        if answer.calls:
            self.transcript.append(tool_result(answer.calls[0].id, feedback))
        else:
            self.transcript.append(ChatMessage(ChatRole.USER, encode_data(feedback)))

    def _variables(self, agreed: JsonObject | None, remembered: list[str]) -> dict[str, Json]:
        context, flow = self.run.context, self.run.flow
        config = context.world.domain.config
        return {
            "assistant": config.description or config.persona.name,
            "today": context.today,
            "task": self.skill.description or flow.spec.description,
            "instructions": self.skill.instructions,
            "criteria": list(self.skill.criteria),
            "finish": FINISH,
            "utterance": context.text,
            "history": ContextCoordinator(context.state.history).show_recent(),
            "slots": flow.values(),
            "known": self.policy.knowledge(self.run),
            "notes": [note["text"] for note in flow.progress.scratchpad],
            "remembered": list(remembered),
            "done": [] if agreed is None else [agreed],
        }


REFLECT_PROMPT = "pex_reflect"
REFLECT_SCHEMA = closed(good={"type": "boolean"}, faults=list_of(bounded_text(300), 5))


async def _find_faults(
    run: Execution, skill: SkillSpec, engineer: PromptEngineer, clock: Clock, data: JsonObject
) -> list[str]:
    """Ask a model to find faults in a result. Return an empty list if the model fails."""
    variables = {
        "task": skill.description,
        "criteria": list(skill.criteria),
        "utterance": run.context.text,
        "slots": run.flow.values(),
        "result": data,
    }
    call = run.context.call.for_flow(run.flow.flow_id)
    try:
        async with clock.limit():
            verdict = await engineer.structured(REFLECT_PROMPT, variables, REFLECT_SCHEMA, call)
    except (*MODEL_FAILURES, SkillTimedOut) as error:
        why = f"The result could not be evaluated: {error or 'timed out'}"
        run.context.log.failed_check("pex", "reflection", why, run.flow.flow_id)
        return []
    return [] if verdict["good"] else [str(fault) for fault in verdict["faults"]]
