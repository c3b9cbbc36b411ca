"""Getting one answer out of models that fail: budget, breaker, the model, retries, the fallback.

Does not know prompts and does not judge answers.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

from tenacity import AsyncRetrying

from orchestrator.errors import ModelNotConfigured, ModelTimedOut, ModelUnavailable, Unavailable
from orchestrator.models.breaker import Breaker, BreakerBoard
from orchestrator.models.budget import Budgets, Price, Spending, completion_tokens, prompt_tokens
from orchestrator.models.config import ModelChoice, ModelConfig
from orchestrator.models.journal import CallJournal
from orchestrator.ports.language_model import (
    ChatDelta,
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    ChatRole,
    FinishReason,
    ToolCall,
    Usage,
)
from orchestrator.ports.spending import Spent
from orchestrator.telemetry import get_logger
from orchestrator.types import FlowId, SessionId, TurnId

_logger = get_logger(__name__)
_FREE = Price()
PublishCall = Callable[[str, str], Awaitable[None]]
"""Is given the name of a call and its arguments so far."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """Time, passed in. `clock` never goes back; `wall_clock` is seconds since 1970."""

    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """For whom a call is made. A turn makes one and uses it, or its `for_flow`, for all its calls.

    `deadline`: the time on `Pacing.clock` at which the turn must have its answer.
    """

    session_id: SessionId
    turn_id: TurnId
    flow: FlowId | None = None
    deadline: float | None = None
    spending: Spending = field(default_factory=Spending)
    journal: CallJournal | None = None
    """Keeps answers for a retried turn; without it every call is made."""

    def for_flow(self, flow: FlowId) -> "CallContext":
        return replace(self, flow=flow)

    def within(self, seconds: float, clock: Callable[[], float]) -> "CallContext":
        """Make the same with a nearer deadline, if it is nearer."""
        latest = clock() + seconds
        return (
            self if self.deadline is not None and self.deadline <= latest else replace(self, deadline=latest)
        )


@dataclass(slots=True)
class CallLog:
    """What happened on the way to an answer, for its signal."""

    model: str | None = None
    """Who answered, as the endpoint names it."""
    asked: str | None = None
    """Who was asked last, as it is configured."""
    refused_by: str | None = None
    """The scope of the budget that forbade the call."""
    requests: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Model and error code of each request that got no answer."""
    spent: Spent = field(default_factory=Spent)
    repaired: bool = False
    doubled: bool = False
    messages: tuple[ChatMessage, ...] = ()
    """What was asked last."""
    answer: ChatMessage | None = None
    """What was answered to that, as far as it came."""

    def begin(self, model: str, request: ChatRequest) -> None:
        self.asked, self.messages, self.answer = model, request.messages, None


@dataclass(slots=True)
class _Payment:
    actual: Spent = field(default_factory=Spent)


class ModelCaller:
    """Sends requests to the models that a configuration names."""

    def __init__(
        self,
        models: Mapping[str, ChatModel],
        config: ModelConfig,
        budgets: Budgets,
        board: BreakerBoard,
        pacing: Pacing,
    ) -> None:
        self._models = models
        self._config = config
        self._budgets = budgets
        self._board = board
        self._pacing = pacing

    def can_answer(self, prompt_id: str | None) -> bool:
        """Tell whether a model that may answer a prompt, or any (None), lets requests pass."""
        return any(self.would_admit(choice) for choice in self._config.choices(prompt_id))

    def would_admit(self, choice: ModelChoice) -> bool:
        return choice.provider in self._models and self._breaker(choice).would_admit

    async def complete(
        self, request: ChatRequest, call: CallContext, log: CallLog, *, voter: ModelChoice | None = None
    ) -> ChatReply:
        """Get a whole answer; from `voter` and no other model, if one is named.

        Raises:
            ModelUnavailable: how the last model failed.
            BudgetExceeded: nothing was sent.
        """
        choices = self._choices(request, voter)
        for choice in choices:
            try:
                async for attempt in self._retrying(choice, call):
                    with attempt, _noted(choice, log):
                        return await self._complete_once(choice, request, call, log)
            except ModelUnavailable:
                if choice is choices[-1] or not self._in_time(call):
                    raise
        raise AssertionError("the last model answers or raises")

    async def stream(
        self, request: ChatRequest, call: CallContext, log: CallLog
    ) -> AsyncGenerator[ChatDelta, None]:
        """Get an answer piece by piece; after the first piece a failure is final. Raises as `complete`."""
        choices = self._choices(request)
        has_begun = False

        def may_retry() -> bool:
            return not has_begun

        for choice in choices:
            try:
                async for attempt in self._retrying(choice, call, may_retry):
                    with attempt, _noted(choice, log):
                        async with aclosing(self._stream_once(choice, request, call, log)) as deltas:
                            async for delta in deltas:
                                has_begun = True
                                yield delta
                        return
            except ModelUnavailable:
                if has_begun or choice is choices[-1] or not self._in_time(call):
                    raise

    async def complete_aloud(
        self, request: ChatRequest, call: CallContext, log: CallLog, publish: PublishCall
    ) -> ChatReply:
        """Get one whole answer, and hand on what its calls say so far; one that breaks off is asked for anew."""
        text, finish_reason, usage = "", FinishReason.STOP, None
        calls: dict[int, ToolCall] = {}
        try:
            async with aclosing(self.stream(request, call, log)) as deltas:
                async for delta in deltas:
                    text += delta.text
                    finish_reason, usage = delta.finish_reason or finish_reason, delta.usage or usage
                    for piece in delta.calls:
                        known = calls.get(piece.place, ToolCall("", "", ""))
                        grown = ToolCall(
                            known.id or piece.id, known.name or piece.name, known.arguments + piece.arguments
                        )
                        calls[piece.place] = grown
                        await publish(grown.name, grown.arguments)
        except ModelUnavailable:
            if not text and not calls:
                raise
            return await self.complete(request, call, log)
        log.answer = ChatMessage(ChatRole.ASSISTANT, text, tuple(calls.values()))
        return ChatReply(text, finish_reason, log.model or "", tuple(calls.values()), usage)

    async def _complete_once(
        self, choice: ModelChoice, request: ChatRequest, call: CallContext, log: CallLog
    ) -> ChatReply:
        log.begin(choice.model, request)
        request = self._addressed(request, choice, call)
        price = self._config.prices.get(choice.model, _FREE)
        async with self._paid(request, price, call, log) as payment:
            with self._breaker(choice).guard():
                log.requests += 1
                reply = await self._models[choice.provider].complete(request)
            usage = reply.usage or Usage(prompt_tokens(request), completion_tokens(reply.text))
            payment.actual = price.of(usage)
        log.model = reply.model
        log.answer = ChatMessage(ChatRole.ASSISTANT, reply.text, reply.tool_calls)
        return reply

    async def _stream_once(
        self, choice: ModelChoice, request: ChatRequest, call: CallContext, log: CallLog
    ) -> AsyncGenerator[ChatDelta, None]:
        log.begin(choice.model, request)
        log.model = choice.model
        request = self._addressed(request, choice, call)
        price = self._config.prices.get(choice.model, _FREE)
        usage = Usage(prompt_tokens(request), 0)
        async with self._paid(request, price, call, log) as payment:
            with self._breaker(choice).guard():
                log.requests += 1
                async with aclosing(self._models[choice.provider].stream(request)) as deltas:
                    async for delta in deltas:
                        usage = delta.usage or _grown(usage, delta)
                        said = "" if log.answer is None else log.answer.content
                        log.answer = ChatMessage(ChatRole.ASSISTANT, said + delta.text)
                        payment.actual = price.of(usage)
                        yield delta

    def _choices(self, request: ChatRequest, voter: ModelChoice | None = None) -> tuple[ModelChoice, ...]:
        wanted = self._config.choices(request.metadata.prompt_id) if voter is None else (voter,)
        choices = tuple(choice for choice in wanted if choice.provider in self._models)
        if not choices:
            raise ModelNotConfigured(
                "No model is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL, to use one."
            )
        return choices

    def _retrying(
        self, choice: ModelChoice, call: CallContext, may_retry: Callable[[], bool] = lambda: True
    ) -> AsyncRetrying:
        return self._config.retries.retrying(
            self._pacing.sleep,
            lambda wait: self._in_time(call, wait),
            lambda: may_retry() and self.would_admit(choice),
        )

    def _in_time(self, call: CallContext, wait: float = 0.0) -> bool:
        return call.deadline is None or self._pacing.clock() + wait < call.deadline

    def _addressed(self, request: ChatRequest, choice: ModelChoice, call: CallContext) -> ChatRequest:
        left = request.timeout_s if call.deadline is None else call.deadline - self._pacing.clock()
        if left <= 0:
            raise ModelTimedOut("The turn has no time left to ask a model.")
        return replace(request, model=choice.model, timeout_s=min(left, request.timeout_s))

    def _breaker(self, choice: ModelChoice) -> Breaker:
        return self._board.of(self._models[choice.provider].endpoint, choice.model)

    @asynccontextmanager
    async def _paid(
        self, request: ChatRequest, price: Price, call: CallContext, log: CallLog
    ) -> AsyncGenerator[_Payment, None]:
        """Hold a reservation while the block runs, then pay what the block says was spent."""
        try:
            reservation = await self._budgets.reserve(request, price, call.spending, call.session_id)
        except Unavailable as error:
            raise ModelUnavailable("The model budget cannot be checked now, so nothing was sent.") from error
        payment = _Payment()
        try:
            yield payment
        finally:
            log.spent = log.spent.plus(payment.actual)
            try:
                await self._budgets.charge(reservation, payment.actual)
            except Unavailable as error:
                # The reservation stays: the counters show too much, never too little.
                _logger.warning("What a model call spent could not be counted.", error=error)


@contextmanager
def _noted(choice: ModelChoice, log: CallLog) -> Generator[None, None, None]:
    try:
        yield
    except ModelUnavailable as error:
        log.failures.append((choice.model, error.code))
        raise


def _grown(usage: Usage, delta: ChatDelta) -> Usage:
    # Endpoints send about a token per piece.
    is_more = bool(delta.text or delta.calls)
    return replace(usage, completion_tokens=usage.completion_tokens + 1) if is_more else usage
