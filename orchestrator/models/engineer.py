"""The Prompt Engineer: the one interface to models (CO-2).

Turns a prompt's name and variables into a usable answer or one of `MODEL_FAILURES`, and records
how. What the answer means is the caller's business.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from orchestrator.errors import BudgetExceeded, ModelOutputInvalid, ParleyError
from orchestrator.models.breaker import BreakerBoard, CircuitView
from orchestrator.models.budget import Budgets, InProcessSpending
from orchestrator.models.calling import CallContext, CallLog, ModelCaller, Pacing, PublishCall
from orchestrator.models.config import ModelChoice, ModelConfig
from orchestrator.models.signals import call_signal, circuit_signal
from orchestrator.models.structured import (
    CutOff,
    Judgement,
    Shape,
    ToolsAnswer,
    Unusable,
    Usable,
    ask_again,
    judge_object,
    judge_text,
    judge_tools,
    read_answer,
    write_answer,
    write_message,
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


class PromptEngineer:
    """Asks models by prompt identifier.

    Every method that asks raises ModelUnavailable (or a subclass), ModelOutputInvalid or
    BudgetExceeded when there is no usable answer, and NotFound or PromptVariablesWrong when it is
    called wrongly.
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
        """Make one.

        Args:
            models: endpoints by provider name; empty when none is configured.
            prompts: what can be asked.
            config: how it is asked.
            spending: counters shared with other processes.
            record: receives a signal for every call and every change of a breaker.
            pacing: time.
            board: breakers that are shared with other engineers; they record where they were made.
            keep_prompts: signals of calls carry what was asked and answered.
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
        """Tell whether a model can be asked now: one is configured, and its breaker lets requests pass."""
        return self.can_answer(None)

    def can_answer(self, prompt_id: str | None) -> bool:
        """Say the same of one prompt, which may have a model of its own."""
        return self._caller.can_answer(prompt_id)

    def can_ask(self, choice: ModelChoice) -> bool:
        """Say the same of one model."""
        return self._caller.would_admit(choice)

    @property
    def circuits(self) -> tuple[CircuitView, ...]:
        """List the breakers' states, for health reports and people."""
        return self._board.views()

    async def structured(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        schema: JsonObject,
        call: CallContext,
        *,
        voter: ModelChoice | None = None,
    ) -> JsonObject:
        """Ask for one JSON object that fits a JSON Schema.

        `voter`: this model and no other, for rounds in which several models are asked (NL-3).
        """
        prompt = self._prompts.get(prompt_id)

        async def ask() -> JsonObject:
            shape = Shape(schema)
            output = OutputSchema(prompt_id, schema, self._config.strict_schemas)
            return await self._obtain(
                prompt,
                call,
                lambda prompt: replace(self._request(prompt, variables, call), output=output),
                lambda reply: judge_object(reply, shape),
                voter=voter,
            )

        asked = [prompt.digest, dict(variables), voter.model if voter is not None else None]
        return await self._once(prompt, call, asked, ask)

    async def text(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        call: CallContext,
        *,
        publish: Callable[[str], Awaitable[None]] | None = None,
    ) -> str:
        """Ask for plain text.

        `publish`: gets the pieces while the model writes them, and nothing when the answer is known
        from an earlier attempt. An answer that breaks off is not asked for again.
        """
        prompt = self._prompts.get(prompt_id)

        async def ask() -> str:
            if publish is not None:
                return await self._publish(prompt_id, variables, call, publish)
            return await self._obtain(
                prompt, call, lambda prompt: self._request(prompt, variables, call), judge_text
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
            find_fault: says why an answer cannot be used although its calls fit their schemas.
            publish: gets the name of each call and its arguments so far while the model writes them, and
                nothing when the answer is known from an earlier attempt, or is asked for again.
        """
        shapes = {tool.name: Shape(tool.parameters) for tool in tools}

        def make(prompt: Prompt) -> ChatRequest:
            request = self._request(prompt, variables, call)
            return replace(request, messages=request.messages + transcript, tools=tools)

        def judge(reply: ChatReply) -> Judgement[ToolsAnswer]:
            judged = judge_tools(reply, tools, shapes)
            fault = find_fault(judged.answer) if find_fault and isinstance(judged, Usable) else None
            return judged if fault is None else Unusable(fault)

        prompt = self._prompts.get(prompt_id)

        async def ask() -> JsonObject:
            return write_answer(await self._obtain(prompt, call, make, judge, publish=publish))

        offered = [[tool.name, tool.description, tool.parameters] for tool in tools]
        said = [write_message(message) for message in transcript]
        return read_answer(
            await self._once(prompt, call, [prompt.digest, dict(variables), offered, said], ask)
        )

    async def stream(
        self, prompt_id: str, variables: Mapping[str, Json], call: CallContext
    ) -> AsyncGenerator[str, None]:
        """Ask for plain text, piece by piece. A failure after the first piece leaves the text unfinished."""
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
        """Stream an answer, hand its pieces on, and give the whole of it."""
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
        """Ask, unless the turn's journal has the answer from an earlier attempt."""
        return await ask() if call.journal is None else await call.journal.once(prompt.id, asked, ask)

    async def _obtain(
        self,
        prompt: Prompt,
        call: CallContext,
        make: Callable[[Prompt], ChatRequest],
        judge: Callable[[ChatReply], Judgement[Answer]],
        *,
        voter: ModelChoice | None = None,
        publish: PublishCall | None = None,
    ) -> Answer:
        """Ask until the answer is usable: once more with twice the tokens, once more with the reason."""
        request = make(prompt)
        if (bound := self._config.timeouts.answer_s) is not None:
            call = call.within(bound, self._pacing.clock)
        with self._recorded(prompt, call) as log:
            while True:
                if publish is not None:
                    patient = replace(request, timeout_s=self._config.timeouts.stream_s)
                    reply = await self._caller.complete_aloud(patient, call, log, publish)
                    publish = None
                else:
                    reply = await self._caller.complete(request, call, log, voter=voter)
                match judge(reply):
                    case Usable(answer):
                        return answer
                    case CutOff():
                        if log.doubled:
                            raise ModelOutputInvalid(prompt.id, _CUT_OFF)
                        log.doubled = True
                        request = replace(request, max_tokens=2 * request.max_tokens)
                    case Unusable(reason):
                        if log.repaired:
                            raise ModelOutputInvalid(prompt.id, reason)
                        log.repaired = True
                        request = replace(request, messages=request.messages + ask_again(reply, reason))

    def _request(self, prompt: Prompt, variables: Mapping[str, Json], call: CallContext) -> ChatRequest:
        return ChatRequest(
            model="",  # The caller names it, for each attempt.
            messages=prompt.render(variables),
            metadata=CallMetadata(prompt.id, prompt.version, call.session_id, call.turn_id),
            max_tokens=self._config.tokens_for(prompt.id),
            timeout_s=self._config.timeouts.request_s,
            temperature=self._config.temperature,
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
    """Make the message that carries a tool's result back to the model, as data."""
    return ChatMessage(ChatRole.TOOL, encode_data(result), tool_call_id=call_id)


def _check_ending(prompt_id: str, finish_reason: FinishReason | None, *, empty: bool) -> None:
    if finish_reason is FinishReason.LENGTH:
        raise ModelOutputInvalid(prompt_id, _CUT_OFF)
    if finish_reason is FinishReason.CONTENT_FILTER:
        raise ModelOutputInvalid(prompt_id, "the endpoint's content filter stopped it")
    if empty:
        raise ModelOutputInvalid(prompt_id, "it is empty")
