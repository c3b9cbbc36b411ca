"""Model calls with budgets, circuit breakers, retries and fallback.

This module neither renders prompts nor validates answers.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from tenacity import AsyncRetrying

from orchestrator.errors import (
    BudgetExceeded,
    EndpointError,
    ModelFiltered,
    ModelNotConfigured,
    ModelRefused,
    ModelRejected,
    ModelTimedOut,
    ModelUnavailable,
    Unavailable,
)
from orchestrator.models.breaker import Breaker, BreakerBoard
from orchestrator.models.budget import (
    MICROS,
    Budgets,
    Spending,
    Tariff,
    completion_tokens,
    prompt_tokens,
)
from orchestrator.models.call_log import CallLog, Problem
from orchestrator.models.config import ModelChoice, ModelConfig
from orchestrator.models.journal import CallJournal
from orchestrator.ports.language_model import (
    CallPiece,
    ChatDelta,
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    ChatRole,
    FinishReason,
    Opaque,
    RequestField,
    ToolCall,
    Usage,
)
from orchestrator.ports.spending import Spent
from orchestrator.telemetry import get_logger
from orchestrator.types import DEFAULT_TENANT, FlowId, SessionId, TenantId, TurnId, UserId

_logger = get_logger(__name__)
PublishCall = Callable[[str, str], Awaitable[None]]
"""A callback that receives the name and partial arguments of a tool call."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """Clocks and sleep, replaceable in tests. `clock` is monotonic; `wall_clock` returns Unix seconds."""

    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The context of a turn's model calls. All calls share one context, or copies of it with the same `spending`.

    `deadline`: the time on `Pacing.clock` at which the turn needs its answer. `journal`: stores answers for
    retries of the turn. Default: answers are not stored.
    """

    session_id: SessionId
    turn_id: TurnId
    tenant_id: TenantId = DEFAULT_TENANT
    user_id: UserId | None = None
    flow: FlowId | None = None
    deadline: float | None = None
    spending: Spending = field(default_factory=Spending)
    journal: CallJournal | None = None

    def for_flow(self, flow: FlowId) -> "CallContext":
        return replace(self, flow=flow)

    def within(self, seconds: float, clock: Callable[[], float]) -> "CallContext":
        """Return a context whose deadline is at most `seconds` from now."""
        latest = clock() + seconds
        return (
            self if self.deadline is not None and self.deadline <= latest else replace(self, deadline=latest)
        )


@dataclass(slots=True)
class _Payment:
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ModelCaller:
    models: Mapping[str, ChatModel]
    config: ModelConfig
    budgets: Budgets
    board: BreakerBoard
    pacing: Pacing

    def can_answer(self, prompt_id: str | None) -> bool:
        """Return True if any model for this prompt accepts requests.

        `prompt_id`: None for the default model.
        """
        return any(self.would_admit(choice) for choice in self.config.choices(prompt_id))

    def would_admit(self, choice: ModelChoice) -> bool:
        return choice.provider in self.models and self._breaker(choice).would_admit

    async def complete(self, request: ChatRequest, call: CallContext, log: CallLog) -> ChatReply:
        """Return a complete answer from the first model that gives one.

        Raises:
            ModelUnavailable: no model is configured, all models failed, or a model refused to answer.
            BudgetExceeded: the call would exceed a budget and was not sent.
        """
        choices = self._choices(request)
        for choice in choices:
            try:
                async for attempt in self._retrying(choice, call):
                    with attempt, self._noted(choice, log):
                        return await self._complete_once(choice, request, call, log)
            except (ModelFiltered, ModelRefused):
                raise
            except ModelUnavailable:
                if choice is choices[-1] or not self._in_time(call):
                    raise
        raise AssertionError("the last model answers or raises")

    async def stream(
        self, request: ChatRequest, call: CallContext, log: CallLog
    ) -> AsyncGenerator[ChatDelta, None]:
        """Stream an answer.

        Raises the same errors as `complete`. An answer that has begun to arrive is not requested again.
        """
        choices = self._choices(request)
        has_begun = False

        def may_retry() -> bool:
            return not has_begun

        for choice in choices:
            try:
                async for attempt in self._retrying(choice, call, may_retry):
                    with attempt, self._noted(choice, log):
                        async with aclosing(self._stream_once(choice, request, call, log)) as deltas:
                            async for delta in deltas:
                                has_begun = has_begun or delta.says_something
                                yield delta
                        return
            except (ModelFiltered, ModelRefused):
                raise
            except ModelUnavailable:
                if has_begun or choice is choices[-1] or not self._in_time(call):
                    raise

    async def complete_aloud(
        self, request: ChatRequest, call: CallContext, log: CallLog, publish: PublishCall
    ) -> ChatReply:
        """Return a complete answer, and publish its tool calls while they stream.

        If the stream breaks off mid-answer, request the answer again without streaming, unless the error is
        final.
        """
        text, finish_reason, usage, opaque = "", FinishReason.STOP, None, None
        calls: dict[int, ToolCall] = {}
        try:
            async with aclosing(self.stream(request, call, log)) as deltas:
                async for delta in deltas:
                    text += delta.text
                    finish_reason, usage = delta.finish_reason or finish_reason, delta.usage or usage
                    opaque = delta.opaque or opaque
                    for piece in delta.calls:
                        known = calls.get(piece.place, ToolCall("", "", ""))
                        grown = ToolCall(
                            known.id or piece.id, known.name or piece.name, known.arguments + piece.arguments
                        )
                        calls[piece.place] = grown
                        await publish(grown.name, grown.arguments)
        except ModelUnavailable as error:
            if error.final or not (text or calls):
                raise
            return await self.complete(request, call, log)
        log.answer = _said(text, tuple(calls.values()), opaque)
        return ChatReply(text, finish_reason, log.model or "", tuple(calls.values()), usage, opaque)

    async def _complete_once(
        self, choice: ModelChoice, request: ChatRequest, call: CallContext, log: CallLog
    ) -> ChatReply:
        """Request a complete answer. If the endpoint rejects the form of the request, try other forms."""
        while True:
            sent = self._begin(choice, request, call, log)
            try:
                reply = await self._complete_sent(choice, sent, call, log)
            except ModelRejected as error:
                if not self._correct(choice, sent, error, log):
                    raise
            else:
                return reply

    async def _complete_sent(
        self, choice: ModelChoice, sent: ChatRequest, call: CallContext, log: CallLog
    ) -> ChatReply:
        async with self._paid(choice, sent, call, log) as payment:
            with self._breaker(choice).guard():
                log.requests += 1
                reply = await self.models[choice.provider].complete(sent)
            payment.usage = reply.usage or Usage(prompt_tokens(sent), completion_tokens(reply.text))
        log.model = reply.model or choice.model
        log.answer = _said(reply.text, reply.tool_calls, reply.opaque)
        self._note_answer(choice, sent)
        return reply

    async def _stream_once(
        self, choice: ModelChoice, request: ChatRequest, call: CallContext, log: CallLog
    ) -> AsyncGenerator[ChatDelta, None]:
        while True:
            sent = self._begin(choice, request, call, log)
            if not sent.profile.takes(RequestField.STREAM):
                yield _in_one_piece(await self._complete_once(choice, request, call, log))
                return
            try:
                async with aclosing(self._stream_sent(choice, sent, call, log)) as deltas:
                    async for delta in deltas:
                        yield delta
            except ModelRejected as error:
                if not self._correct(choice, sent, error, log):
                    raise
            else:
                return

    async def _stream_sent(
        self, choice: ModelChoice, sent: ChatRequest, call: CallContext, log: CallLog
    ) -> AsyncGenerator[ChatDelta, None]:
        log.model = choice.model
        usage = Usage(prompt_tokens(sent), 0)
        async with self._paid(choice, sent, call, log) as payment:
            with self._breaker(choice).guard():
                log.requests += 1
                async with aclosing(self.models[choice.provider].stream(sent)) as deltas:
                    async for delta in deltas:
                        payment.usage = usage = delta.usage or _grown(usage, delta)
                        said = "" if log.answer is None else log.answer.content
                        log.answer = ChatMessage(ChatRole.ASSISTANT, said + delta.text)
                        yield delta
        self._note_answer(choice, sent)

    def _begin(
        self, choice: ModelChoice, request: ChatRequest, call: CallContext, log: CallLog
    ) -> ChatRequest:
        log.begin(choice.model, request)
        return self._addressed(request, choice, call)

    def _key(self, choice: ModelChoice) -> tuple[str, str]:
        return self.models[choice.provider].endpoint, choice.model

    def _correct(self, choice: ModelChoice, sent: ChatRequest, error: ModelRejected, log: CallLog) -> bool:
        """Learn from a rejection. Return True if a different form of the request should be tried."""
        if log.answer is not None and log.answer.content:
            return False
        if self.board.profiles.correct(self._key(choice), sent, error) is None:
            return False
        field = error.said.field if error.said is not None else None
        log.corrected.append(field or "unnamed")
        if field is not None:
            self._breaker(choice).announce()
        return True

    def _note_answer(self, choice: ModelChoice, sent: ChatRequest) -> None:
        if self.board.profiles.note_answer(self._key(choice), sent):
            self._breaker(choice).announce()

    def _choices(self, request: ChatRequest) -> tuple[ModelChoice, ...]:
        wanted = self.config.choices(request.metadata.prompt_id)
        choices = tuple(choice for choice in wanted if choice.provider in self.models)
        if not choices:
            raise ModelNotConfigured(
                "No model is configured. Set OPENAI_API_KEY, OPENAI_BASE_URL or PARLEY_MODEL=provider:name."
            )
        return choices

    def _retrying(
        self, choice: ModelChoice, call: CallContext, may_retry: Callable[[], bool] = lambda: True
    ) -> AsyncRetrying:
        return self.config.retries.retrying(
            self.pacing.sleep,
            lambda wait: self._in_time(call, wait),
            lambda: may_retry() and self.would_admit(choice),
        )

    def _in_time(self, call: CallContext, wait: float = 0.0) -> bool:
        return call.deadline is None or self.pacing.clock() + wait < call.deadline

    def _addressed(self, request: ChatRequest, choice: ModelChoice, call: CallContext) -> ChatRequest:
        left = request.timeout_s if call.deadline is None else call.deadline - self.pacing.clock()
        if left <= 0:
            raise ModelTimedOut("The turn has no time left for a model call.")
        return replace(
            request,
            model=choice.model,
            timeout_s=min(left, request.timeout_s),
            profile=self.board.profiles.of(self._key(choice)),
        )

    @contextmanager
    def _noted(self, choice: ModelChoice, log: CallLog) -> Generator[None, None, None]:
        try:
            yield
        except ModelUnavailable as error:
            endpoint, model = self._key(choice)
            said = error.said or EndpointError(endpoint)
            log.problems.append(Problem(model, error.code, said, self._breaker(choice).never_answered))
            raise

    def _tariff(self, choice: ModelChoice) -> Tariff:
        if (price := self.config.prices.get(choice.model)) is not None:
            return price.of
        list_price: Callable[[Usage], float] = partial(self.models[choice.provider].list_price, choice.model)
        return lambda usage: Spent(usage.total_tokens, round(list_price(usage) * MICROS))

    def _breaker(self, choice: ModelChoice) -> Breaker:
        return self.board.of(*self._key(choice))

    @asynccontextmanager
    async def _paid(
        self, choice: ModelChoice, request: ChatRequest, call: CallContext, log: CallLog
    ) -> AsyncGenerator[_Payment, None]:
        """Reserve budget for the block, and charge the usage that the block reports."""
        tariff = self._tariff(choice)
        try:
            reservation = await self.budgets.reserve(
                request, tariff, call.spending, call.session_id, call.tenant_id, call.user_id
            )
        except BudgetExceeded as error:
            call.spending.refused_by = error.scope
            raise
        except Unavailable as error:
            raise ModelUnavailable(
                "Could not check the model budget, so the request was not sent."
            ) from error
        payment = _Payment()
        try:
            yield payment
        finally:
            actual = Spent() if payment.usage is None else tariff(payment.usage)
            if payment.usage is not None:
                log.count(payment.usage, actual)
            try:
                await self.budgets.charge(reservation, actual)
            except Unavailable as error:
                # The reservation stays, so counters may be too high but never too low.
                _logger.warning("Could not record a model call's usage.", error=error)


def _said(text: str, calls: tuple[ToolCall, ...], opaque: Opaque | None) -> ChatMessage:
    return ChatMessage(ChatRole.ASSISTANT, text, calls, opaque=opaque)


def _in_one_piece(reply: ChatReply) -> ChatDelta:
    calls = tuple(
        CallPiece(place, call.id, call.name, call.arguments) for place, call in enumerate(reply.tool_calls)
    )
    return ChatDelta(reply.text, reply.finish_reason, reply.usage, calls, reply.opaque)


def _grown(usage: Usage, delta: ChatDelta) -> Usage:
    # Endpoints send about one token per delta.
    is_more = bool(delta.text or delta.calls)
    return replace(usage, completion_tokens=usage.completion_tokens + 1) if is_more else usage
