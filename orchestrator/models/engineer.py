"""The Prompt Engineer: the only interface to models (CO-2).

Turns a prompt's name and variables into a usable answer or one of `MODEL_FAILURES`, and records the call.
Callers interpret the answer.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from orchestrator.dialogue.storage.serialization import dump, load
from orchestrator.errors import (
    BudgetExceeded,
    ModelContextExceeded,
    ModelCutOff,
    ModelFiltered,
    ModelOutputInvalid,
    ModelRefused,
    ModelRejected,
    ParleyError,
)
from orchestrator.models.breaker import BreakerBoard, CircuitView
from orchestrator.models.budget import Budgets, InProcessSpending
from orchestrator.models.call_log import CallLog
from orchestrator.models.calling import CallContext, ModelCaller, Pacing, PublishCall
from orchestrator.models.config import ModelConfig
from orchestrator.models.schemas import opened
from orchestrator.models.signals import call_signal, circuit_signal
from orchestrator.models.structured import (
    CutOff,
    Judgement,
    Shape,
    ToolsAnswer,
    Unusable,
    Usable,
    Withheld,
    ask_again,
    check_ending,
    drop_history,
    validate_object,
    validate_text,
    validate_tools,
)
from orchestrator.models.templates import Prompt, PromptRegistry, encode_data
from orchestrator.ports.language_model import (
    CallMetadata,
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    ChatRole,
    FinishReason,
    OutputSchema,
    ToolChoice,
    ToolDefinition,
)
from orchestrator.ports.spending import SpendingStore
from orchestrator.telemetry import RecordSignal, drop_signal
from orchestrator.telemetry.traces import span
from orchestrator.types import Json, JsonObject

Answer = TypeVar("Answer")
FindFault = Callable[[ToolsAnswer], str | None]
_REAL_PACING = Pacing()
_CUT_OFF = "it met its token limit before it was complete"


def _name_cut_off(thought: int) -> str:
    return f"{_CUT_OFF}; {thought} tokens were spent on thinking" if thought else _CUT_OFF


def _withheld(*, refused: bool) -> ModelRejected:
    if refused:
        return ModelRefused("The model declined to answer.")
    return ModelFiltered("The provider's content filter stopped the answer.")


class PromptEngineer:
    """Calls models by prompt ID.

    Every call raises ModelUnavailable (or a subclass), ModelOutputInvalid or BudgetExceeded if there is no
    usable answer, and NotFound or PromptVariablesWrong for incorrect use.
    """

    def __init__(
        self,
        models: Mapping[str, ChatModel],
        prompts: PromptRegistry,
        config: ModelConfig,
        *,
        spending: SpendingStore | None = None,
        record: RecordSignal = drop_signal,
        pacing: Pacing = _REAL_PACING,
        board: BreakerBoard | None = None,
        keep_prompts: bool = False,
    ) -> None:
        """Create an engineer.

        Args:
            models: endpoints by provider name; empty if none is configured.
            prompts: the available prompts.
            config: the configuration of calls.
            spending: counters shared with other processes.
            record: receives a signal for every call and every change of a breaker.
            pacing: the clock.
            board: breakers shared with other engineers, which record where they were created.
            keep_prompts: include prompts and answers in the signals.
        """
        self._prompts = prompts
        self._config = config
        self._record = record
        self._keep_prompts = keep_prompts
        self._pacing = pacing
        self._board = board or BreakerBoard(
            config.breaker, pacing.clock, lambda view: record(circuit_signal(view))
        )
        store = spending or InProcessSpending(pacing.wall_clock)
        budgets = Budgets(config.budgets, store, pacing.wall_clock)
        self._caller = ModelCaller(models, config, budgets, self._board, pacing)

    @property
    def available(self) -> bool:
        """Return whether a model can be called now: one is configured and its breaker lets requests pass."""
        return self.can_answer(None)

    def can_answer(self, prompt_id: str | None) -> bool:
        """Return the same for one prompt, which can have a separate model."""
        return self._caller.can_answer(prompt_id)

    @property
    def circuits(self) -> tuple[CircuitView, ...]:
        """Return the breakers' states, for health reports and display."""
        return self._board.views()

    async def structured(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        schema: JsonObject,
        call: CallContext,
        *,
        judged_by: JsonObject | None = None,
    ) -> JsonObject:
        """Request one JSON object that matches a JSON Schema.

        `schema`: closed, with all members required, as strict modes need it. `judged_by`: the schema that the
        answer must match. Default: `schema`, with any other members.
        """
        prompt = self._prompts.get(prompt_id)

        async def ask() -> JsonObject:
            shape = Shape(judged_by or opened(schema))
            output = OutputSchema(prompt_id, schema)
            return await self._obtain(
                prompt,
                call,
                lambda prompt: replace(self._request(prompt, variables, call), output=output),
                lambda reply: validate_object(reply, shape),
            )

        return await self._once(prompt, call, [prompt.digest, dict(variables)], ask)

    async def text(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        call: CallContext,
        *,
        publish: Callable[[str], Awaitable[None]] | None = None,
    ) -> str:
        """Request plain text.

        `publish`: receives the text while it is written, but not for a journaled answer. An answer that
        breaks off is not retried.
        """
        prompt = self._prompts.get(prompt_id)

        async def ask() -> str:
            if publish is not None:
                return await self._publish(prompt_id, variables, call, publish)
            return await self._obtain(
                prompt, call, lambda prompt: self._request(prompt, variables, call), validate_text
            )

        return await self._once(prompt, call, [prompt.digest, dict(variables)], ask)

    async def tools(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        tools: tuple[ToolDefinition, ...],
        call: CallContext,
        *,
        transcript: tuple[ChatMessage, ...] = (),
        tool_choice: ToolChoice | str = ToolChoice.AUTO,
        find_fault: FindFault | None = None,
        publish: PublishCall | None = None,
    ) -> ToolsAnswer:
        """Ask for one step of a loop over tools.

        Args:
            prompt_id: the prompt that opens the loop.
            variables: its variables, the same in every step.
            tools: the tools on offer; a call of another one, or with wrong arguments, is repaired.
            call: for whom.
            transcript: `reply` of each earlier step, followed by a `tool_result` for each of its calls.
            tool_choice: whether a tool must be called, or the name of the one that must be.
            find_fault: says why an answer cannot be used although its calls fit their schemas.
            publish: gets the name of each call and its arguments so far while the model writes them, and
                nothing when the answer is known from an earlier attempt, or is asked for again.
        """
        shapes = {tool.name: Shape(tool.judged_by or tool.parameters) for tool in tools}

        def make(prompt: Prompt) -> ChatRequest:
            request = self._request(prompt, variables, call)
            messages = request.messages + transcript
            return replace(request, messages=messages, tools=tools, tool_choice=tool_choice)

        def judge(reply: ChatReply) -> Judgement[ToolsAnswer]:
            judged = validate_tools(reply, tools, shapes)
            fault = find_fault(judged.answer) if find_fault and isinstance(judged, Usable) else None
            return judged if fault is None else Unusable(fault)

        prompt = self._prompts.get(prompt_id)

        async def ask() -> JsonObject:
            return dump(await self._obtain(prompt, call, make, judge, publish=publish))

        offered = [[tool.name, tool.description, tool.parameters] for tool in tools]
        if tool_choice != ToolChoice.AUTO:
            offered.append([tool_choice])
        asked = [prompt.digest, dict(variables), offered, [dump(message) for message in transcript]]
        return load(ToolsAnswer, await self._once(prompt, call, asked, ask))

    async def stream(
        self, prompt_id: str, variables: Mapping[str, Json], call: CallContext
    ) -> AsyncGenerator[str, None]:
        """Stream plain text. A failure after the first piece leaves it incomplete."""
        prompt = self._prompts.get(prompt_id)
        request = replace(self._request(prompt, variables, call), timeout_s=self._config.timeouts.stream_s)
        finish_reason: FinishReason | None = None
        empty = True
        with self._recorded(prompt, call) as log:
            async with aclosing(self._caller.stream(request, call, log)) as deltas:
                async for delta in deltas:
                    finish_reason = delta.finish_reason or finish_reason
                    if delta.text:
                        empty = False
                        yield delta.text
            _check_ending(prompt_id, finish_reason, empty=empty)

    async def _publish(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        call: CallContext,
        publish: Callable[[str], Awaitable[None]],
    ) -> str:
        """Stream an answer, publish its pieces, and return all of it."""
        pieces: list[str] = []
        async with aclosing(self.stream(prompt_id, variables, call)) as stream:
            async for piece in stream:
                pieces.append(piece)
                await publish(piece)
        text = "".join(pieces).strip()
        if not text:
            raise ModelOutputInvalid(prompt_id, "it is empty")
        return text

    async def _once(
        self, prompt: Prompt, call: CallContext, asked: Json, ask: Callable[[], Awaitable[Json]]
    ) -> Any:
        """Call the model, unless the turn's journal has the answer of an earlier attempt."""
        return await ask() if call.journal is None else await call.journal.once(prompt.id, asked, ask)

    async def _obtain(
        self,
        prompt: Prompt,
        call: CallContext,
        make: Callable[[Prompt], ChatRequest],
        judge: Callable[[ChatReply], Judgement[Answer]],
        *,
        publish: PublishCall | None = None,
    ) -> Answer:
        """Request until the answer is usable: at most once with twice the tokens, and once with the reason."""
        request = make(prompt)
        if (bound := self._config.timeouts.answer_s) is not None:
            call = call.within(bound, self._pacing.clock)
        with self._recorded(prompt, call) as log:
            while True:
                reply = await self._reply(request, call, log, publish)
                publish = None
                match judge(reply):
                    case Usable(answer):
                        return answer
                    case CutOff():
                        thought = reply.usage.reasoning_tokens if reply.usage is not None else 0
                        if log.doubled:
                            raise ModelCutOff(prompt.id, _name_cut_off(thought))
                        log.doubled = True
                        request = replace(request, max_tokens=2 * (request.max_tokens + thought))
                    case Withheld(refused):
                        raise _withheld(refused=refused)
                    case Unusable(reason):
                        if log.repaired:
                            raise ModelOutputInvalid(prompt.id, reason)
                        log.repaired = True
                        request = replace(request, messages=request.messages + ask_again(reply, reason))

    async def _reply(
        self, request: ChatRequest, call: CallContext, log: CallLog, publish: PublishCall | None
    ) -> ChatReply:
        """Request one answer; if the request is too long, retry with the newer half of the conversation."""
        try:
            if publish is None:
                return await self._caller.complete(request, call, log)
            patient = replace(request, timeout_s=self._config.timeouts.stream_s)
            return await self._caller.complete_aloud(patient, call, log, publish)
        except ModelContextExceeded:
            shorter = drop_history(request.messages)
            if shorter is None:
                raise
            log.shortened = True
            return await self._caller.complete(replace(request, messages=shorter), call, log)

    def _request(self, prompt: Prompt, variables: Mapping[str, Json], call: CallContext) -> ChatRequest:
        return ChatRequest(
            model="",  # The caller sets it for each attempt.
            messages=prompt.render(variables),
            metadata=CallMetadata(prompt.id, prompt.version, call.session_id, call.turn_id),
            max_tokens=self._config.tokens_for(prompt),
            timeout_s=self._config.timeouts.request_s,
            temperature=self._config.temperature,
            effort=self._config.effort_for(prompt),
        )

    @contextmanager
    def _recorded(self, prompt: Prompt, call: CallContext) -> Generator[CallLog, None, None]:
        """Record one signal for the block, however it ends."""
        log = CallLog()
        started = self._pacing.clock()
        outcome = "answered"
        try:
            with span("model", prompt_id=prompt.id):
                yield log
        except ParleyError as error:
            outcome = error.code
            log.refused_by = error.scope if isinstance(error, BudgetExceeded) else None
            raise
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            duration_ms = (self._pacing.clock() - started) * 1000
            self._record(
                call_signal(prompt, call, log, outcome, duration_ms, with_contents=self._keep_prompts)
            )


def tool_result(call_id: str, result: Json) -> ChatMessage:
    """Return the message with a tool's result for the model, as data."""
    return ChatMessage(ChatRole.TOOL, encode_data(result), tool_call_id=call_id)


def _check_ending(prompt_id: str, finish_reason: FinishReason | None, *, empty: bool) -> None:
    match check_ending(finish_reason):
        case CutOff():
            raise ModelCutOff(prompt_id, _CUT_OFF)
        case Withheld(refused):
            raise _withheld(refused=refused)
        case None:
            pass
    if empty:
        raise ModelOutputInvalid(prompt_id, "it is empty")
