"""Getting one answer out of models that fail: budget, breaker, the model, retries, the fallback.

Does not know prompts and does not judge answers.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

from orchestrator.errors import (
    ModelNotConfigured,
    ModelRejected,
    ModelTimedOut,
    ModelUnavailable,
    Unavailable,
)
from orchestrator.models.breaker import Breaker, BreakerBoard, RetryPolicy, wait_before_retry
from orchestrator.models.budget import Budgets, Price, Spending, completion_tokens, prompt_tokens
from orchestrator.models.config import ModelChoice, ModelConfig
from orchestrator.models.journal import CallJournal
from orchestrator.ports.models import ChatDelta, ChatModel, ChatReply, ChatRequest, Usage
from orchestrator.ports.spending import Spent
from orchestrator.telemetry import get_logger
from orchestrator.types import FlowId, SessionId, TurnId

_logger = get_logger(__name__)
_FREE = Price()


@dataclass(frozen=True, slots=True)
class Pacing:
    """Time and chance, passed in. `clock` never goes back; `wall_clock` is seconds since 1970."""

    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


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


class Tries:
    """The order of attempts: each model of a list in turn, as often as the policy allows."""

    def __init__(
        self,
        choices: tuple[ModelChoice, ...],
        policy: RetryPolicy,
        pacing: Pacing,
        deadline: float | None,
        log: CallLog,
    ) -> None:
        self._choices = choices
        self._policy = policy
        self._pacing = pacing
        self._deadline = deadline
        self._log = log
        self._failed = 0

    @property
    def choice(self) -> ModelChoice:
        return self._choices[0]

    async def next_after(self, error: ModelUnavailable, *, retry: bool) -> None:
        """Wait for a retry or go on to the next model; raises the error when nothing is left."""
        self._log.failures.append((self.choice.model, error.code))
        self._failed += 1
        wait = wait_before_retry(self._policy, self._failed, error, self._pacing.random)
        if retry and wait is not None and self._in_time(wait):
            await self._pacing.sleep(wait)
        elif len(self._choices) > 1 and self._in_time(0.0):
            self._choices = self._choices[1:]
            self._failed = 0
        else:
            raise error

    def _in_time(self, wait: float) -> bool:
        return self._deadline is None or self._pacing.clock() + wait < self._deadline


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

    def choices(self, prompt_id: str | None) -> tuple[ModelChoice, ...]:
        """Name the models to try whose endpoints are configured."""
        return tuple(choice for choice in self._config.choices(prompt_id) if choice.provider in self._models)

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
        choices = self.choices(request.metadata.prompt_id) if voter is None else self._configured((voter,))
        tries = self._tries(choices, call, log)
        while True:
            try:
                return await self._complete_once(tries.choice, request, call, log)
            except ModelUnavailable as error:
                await tries.next_after(error, retry=self.would_admit(tries.choice))

    async def stream(
        self, request: ChatRequest, call: CallContext, log: CallLog
    ) -> AsyncGenerator[ChatDelta, None]:
        """Get an answer piece by piece; after the first piece a failure is final. Raises as `complete`."""
        tries = self._tries(self.choices(request.metadata.prompt_id), call, log)
        while True:
            started = False
            try:
                async with aclosing(self._stream_once(tries.choice, request, call, log)) as deltas:
                    async for delta in deltas:
                        started = True
                        yield delta
            except ModelUnavailable as error:
                if started:
                    log.failures.append((tries.choice.model, error.code))
                    raise
                await tries.next_after(error, retry=self.would_admit(tries.choice))
            else:
                return

    async def _complete_once(
        self, choice: ModelChoice, request: ChatRequest, call: CallContext, log: CallLog
    ) -> ChatReply:
        log.asked = choice.model
        request = self._addressed(request, choice, call)
        price = self._config.prices.get(choice.model, _FREE)
        async with self._paid(request, price, call, log) as payment:
            with _guarded(self._breaker(choice)):
                log.requests += 1
                reply = await self._models[choice.provider].complete(request)
            usage = reply.usage or Usage(prompt_tokens(request), completion_tokens(reply.text))
            payment.actual = price.of(usage)
        log.model = reply.model
        return reply

    async def _stream_once(
        self, choice: ModelChoice, request: ChatRequest, call: CallContext, log: CallLog
    ) -> AsyncGenerator[ChatDelta, None]:
        log.asked = log.model = choice.model
        request = self._addressed(request, choice, call)
        price = self._config.prices.get(choice.model, _FREE)
        usage = Usage(prompt_tokens(request), 0)
        async with self._paid(request, price, call, log) as payment:
            with _guarded(self._breaker(choice)):
                log.requests += 1
                async with aclosing(self._models[choice.provider].stream(request)) as deltas:
                    async for delta in deltas:
                        usage = delta.usage or _grown(usage, delta.text)
                        payment.actual = price.of(usage)
                        yield delta

    def _configured(self, choices: tuple[ModelChoice, ...]) -> tuple[ModelChoice, ...]:
        return tuple(choice for choice in choices if choice.provider in self._models)

    def _tries(self, choices: tuple[ModelChoice, ...], call: CallContext, log: CallLog) -> Tries:
        if not choices:
            raise ModelNotConfigured(
                "No model is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL, to use one."
            )
        return Tries(choices, self._config.retries, self._pacing, call.deadline, log)

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
                await self._budgets.settle(reservation, payment.actual)
            except Unavailable as error:
                # The reservation stays: the counters show too much, never too little.
                _logger.warning("What a model call spent could not be counted.", error=error)


@contextmanager
def _guarded(breaker: Breaker) -> Generator[None, None, None]:
    """Ask the breaker first, and tell it afterwards whether the endpoint answered.

    A rate limit counts as a failure: while it lasts, turns are better off without this model.
    """
    permit = breaker.admit()
    try:
        yield
    except ModelRejected:
        breaker.succeeded(permit)  # A refusal of one request is an answer.
        raise
    except ModelUnavailable:
        breaker.failed(permit)
        raise
    except BaseException:
        breaker.released(permit)
        raise
    else:
        breaker.succeeded(permit)


def _grown(usage: Usage, text: str) -> Usage:
    # Endpoints send about a token per piece.
    return replace(usage, completion_tokens=usage.completion_tokens + 1) if text else usage
