"""The Prompt Engineer: the only interface to models (CO-2).

The Prompt Engineer turns a prompt ID and variables into a validated answer, and records each call.
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
    NotFound,
    ParleyError,
)
from orchestrator.models.breaker import BreakerBoard
from orchestrator.models.budget import Budgets, InProcessSpending
from orchestrator.models.call_log import CallLog
from orchestrator.models.calling import CallContext, ModelCaller, Pacing, PublishCall
from orchestrator.models.config import ModelConfig
from orchestrator.models.schemas import opened
from orchestrator.models.signals import call_signal
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
from orchestrator.models.templates import Prompt, encode_data
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
_CUT_OFF = "it reached the token limit before it was complete"


def _name_cut_off(thought: int) -> str:
    return f"{_CUT_OFF}; {thought} tokens were spent on thinking" if thought else _CUT_OFF


def _withheld(*, refused: bool) -> ModelRejected:
    if refused:
        return ModelRefused("The model declined to answer.")
    return ModelFiltered("The provider's content filter stopped the answer.")


class PromptEngineer:
    """A client that calls models by prompt ID.

    Its methods raise ModelUnavailable, ModelOutputInvalid or BudgetExceeded if there is no usable answer.
    Incorrect use raises NotFound or PromptVariablesWrong.
    """

    def __init__(
        self,
        models: Mapping[str, ChatModel],
        prompts: Mapping[str, Prompt],
        config: ModelConfig,
        board: BreakerBoard,
        *,
        spending: SpendingStore | None = None,
        record: RecordSignal = drop_signal,
        pacing: Pacing = _REAL_PACING,
        keep_prompts: bool = False,
    ) -> None:
        """Create a Prompt Engineer.

        Args:
            models: endpoints by provider name.
            prompts: the available prompts, by ID.
            config: the model-call configuration.
            board: circuit breakers, which engineers can share.
            spending: counters of tokens and cost. Default: counters in this process.
            record: receives a signal for each call.
            pacing: clocks and sleep.
            keep_prompts: True to include prompts and answers in signals.
        """
        self._prompts = prompts
        self._config = config
        self._record = record
        self._keep_prompts = keep_prompts
        self._pacing = pacing
        store = spending or InProcessSpending(pacing.wall_clock)
        budgets = Budgets(config.budgets, store, pacing.wall_clock)
        self._caller = ModelCaller(models, config, budgets, board, pacing)

    @property
    def available(self) -> bool:
        """Return True if the default model or its fallback accepts requests."""
        return self.can_answer(None)

    def can_answer(self, prompt_id: str | None) -> bool:
        """Return True if a model for this prompt, or its fallback, accepts requests.

        `prompt_id`: None for the default model.
        """
        return self._caller.can_answer(prompt_id)

    async def structured(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        schema: JsonObject,
        call: CallContext,
        *,
        judged_by: JsonObject | None = None,
    ) -> JsonObject:
        """Request a JSON object that matches a JSON Schema.

        `schema`: requires all of its properties and allows no others, as strict modes demand. `judged_by`:
        the schema that the answer must match. Default: `schema` with additional properties allowed.
        """
        prompt = self._find(prompt_id)

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

        `publish`: receives the text while it streams, unless the answer comes from the journal. A published
        answer is not retried if it breaks off.
        """
        prompt = self._find(prompt_id)

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
        """Request one step in a tool loop.

        Args:
            prompt_id: the prompt that starts the loop.
            variables: the prompt's variables. Pass the same variables in each step.
            tools: the tools to offer. If the model calls another tool or passes invalid arguments, it is asked
                again once.
            call: the call's context.
            transcript: the `reply` of each earlier step, followed by a `tool_result` for each of its calls.
            tool_choice: the choice mode, or the name of the tool that the model must call.
            find_fault: returns why an otherwise valid answer is unusable, or None if it is usable.
            publish: receives tool calls while they stream, unless the answer comes from the journal or is a
                repair.
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

        prompt = self._find(prompt_id)

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
        """Stream plain text. If the stream raises an error, the text yielded before is incomplete."""
        prompt = self._find(prompt_id)
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

    def _find(self, prompt_id: str) -> Prompt:
        if prompt_id not in self._prompts:
            raise NotFound("prompt", prompt_id)
        return self._prompts[prompt_id]

    async def _publish(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        call: CallContext,
        publish: Callable[[str], Awaitable[None]],
    ) -> str:
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
        """Request an answer until it is usable, with at most one retry for truncation and one for repair."""
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
        """Request one answer.

        If the request is too long, retry without the older half of the conversation.
        """
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
            model="",  # The caller sets the model for each attempt.
            messages=prompt.render(variables),
            metadata=CallMetadata(prompt.id, prompt.version, call.session_id, call.turn_id),
            max_tokens=self._config.tokens_for(prompt),
            timeout_s=self._config.timeouts.request_s,
            temperature=self._config.temperature,
            effort=self._config.effort_for(prompt),
        )

    @contextmanager
    def _recorded(self, prompt: Prompt, call: CallContext) -> Generator[CallLog, None, None]:
        """Record one signal for the block's model call, even if the call fails."""
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
