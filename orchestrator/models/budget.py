"""Token and cost budgets per call, turn, session, user, tenant and day.

Each call first reserves its maximum cost, so that concurrent calls can't exceed a limit together. After the
answer, the actual cost replaces the reservation. Turn counters are kept in this process, and all other
counters in a store.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from orchestrator.errors import BudgetExceeded
from orchestrator.ports.language_model import ChatRequest, Usage
from orchestrator.ports.spending import SpendingStore, Spent
from orchestrator.types import DEFAULT_TENANT, SessionId, TenantId, UserId

CHARACTERS_PER_TOKEN = 3
"""Number of characters per token. It is a low estimate, so that token counts are overestimated."""
TOKENS_PER_MESSAGE = 4
MICROS = 1_000_000
MINUTE_S = 60
DAY_S = 86_400
SESSION_S = 30 * DAY_S
_NOTHING = Spent()


Tariff: TypeAlias = Callable[[Usage], Spent]
"""A function that returns the total tokens in a usage and their cost."""


@dataclass(frozen=True, slots=True)
class Price:
    """Configured prices in US dollars per million tokens."""

    per_million_prompt: float = 0.0
    per_million_completion: float = 0.0

    def of(self, usage: Usage) -> Spent:
        # US dollars per million tokens equal micro-dollars per token.
        prompt = usage.prompt_tokens * self.per_million_prompt
        return Spent(
            usage.total_tokens, round(prompt + usage.completion_tokens * self.per_million_completion)
        )


@dataclass(frozen=True, slots=True)
class Limit:
    """Maximum tokens and maximum cost in millionths of a US dollar. None means unlimited."""

    tokens: int | None = None
    cost_micros: int | None = None

    @property
    def bounded(self) -> bool:
        return self.tokens is not None or self.cost_micros is not None


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    call: Limit = field(default_factory=Limit)
    turn: Limit = field(default_factory=Limit)
    session: Limit = field(default_factory=Limit)
    user_day: Limit = field(default_factory=Limit)
    tenant_minute: Limit = field(default_factory=Limit)
    tenant_day: Limit = field(default_factory=Limit)
    day: Limit = field(default_factory=Limit)


@dataclass(slots=True)
class Spending:
    """The tokens and cost of one turn, updated by all of its model calls.

    `refused_by`: the `BudgetLimits` field that last blocked a call, or None if no call was blocked.
    """

    spent: Spent = _NOTHING
    refused_by: str | None = None

    def add(self, amount: Spent) -> Spent:
        self.spent = self.spent.plus(amount)
        return self.spent


class InProcessSpending:
    """An in-memory `SpendingStore`, for a single worker or tests."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counters: dict[str, tuple[Spent, float]] = {}

    async def add(self, key: str, amount: Spent, *, keep_s: int) -> Spent:
        now = self._clock()
        spent, forget_at = self._counters.pop(key, (Spent(), now))
        total = (spent if forget_at > now else Spent()).plus(amount)
        self._counters[key] = (total, now + keep_s)
        self._forget_oldest(now)
        return total

    def _forget_oldest(self, now: float) -> None:
        for key in list(self._counters)[:2]:
            if self._counters[key][1] <= now:
                del self._counters[key]


@dataclass(frozen=True, slots=True)
class Scope:
    """A counter in the store with its limit. `keep_s`: seconds until the store deletes the counter."""

    name: str
    limit: Limit
    key: str
    keep_s: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """The maximum cost of a call, reserved in its turn and in all limited scopes."""

    worst: Spent
    turn: Spending
    scopes: tuple[Scope, ...]


class Budgets:
    def __init__(self, limits: BudgetLimits, store: SpendingStore, wall_clock: Callable[[], float]) -> None:
        """Create the budgets. `wall_clock`: returns Unix seconds, which determine the minute and the UTC day."""
        self._limits = limits
        self._store = store
        self._wall_clock = wall_clock

    async def reserve(
        self,
        request: ChatRequest,
        price: Tariff,
        turn: Spending,
        session_id: SessionId,
        tenant_id: TenantId = DEFAULT_TENANT,
        user_id: UserId | None = None,
    ) -> Reservation:
        """Reserve a call's maximum cost in all scopes, or raise BudgetExceeded and reserve nothing.

        If a session has no user, the user limit applies to the session. Raises Unavailable if the store does
        not respond.
        """
        worst = price(worst_usage(request))
        check("call", self._limits.call, worst)
        check("turn", self._limits.turn, turn.spent.plus(worst))
        turn.add(worst)
        taken: list[Scope] = []
        try:
            for scope in self._scopes(session_id, tenant_id, user_id):
                taken.append(scope)
                check(scope.name, scope.limit, await self._store.add(scope.key, worst, keep_s=scope.keep_s))
        except BaseException:
            await self._correct(Reservation(worst, turn, tuple(taken)), _NOTHING.minus(worst))
            raise
        return Reservation(worst, turn, tuple(taken))

    async def charge(self, reservation: Reservation, actual: Spent) -> None:
        """Replace a reservation with the actual cost, which is zero if there was no answer."""
        await self._correct(reservation, actual.minus(reservation.worst))

    async def _correct(self, reservation: Reservation, correction: Spent) -> None:
        reservation.turn.add(correction)
        for scope in reservation.scopes:
            await self._store.add(scope.key, correction, keep_s=scope.keep_s)

    def _scopes(
        self, session_id: SessionId, tenant_id: TenantId, user_id: UserId | None
    ) -> tuple[Scope, ...]:
        now, limits = self._wall_clock(), self._limits
        minute, day = int(now // MINUTE_S), int(now // DAY_S)
        tenant = f"tenant:{tenant_id}"
        user = f"session:{session_id}" if user_id is None else f"user:{user_id}"
        scopes = (
            Scope("session", limits.session, f"session:{session_id}", SESSION_S),
            Scope("user_day", limits.user_day, f"{tenant}:day:{day}:{user}", 2 * DAY_S),
            Scope("tenant_minute", limits.tenant_minute, f"{tenant}:minute:{minute}", 2 * MINUTE_S),
            Scope("tenant_day", limits.tenant_day, f"{tenant}:day:{day}", 2 * DAY_S),
            Scope("day", limits.day, f"day:{day}", 2 * DAY_S),
        )
        return tuple(scope for scope in scopes if scope.limit.bounded)


def check(scope: str, limit: Limit, wanted: Spent) -> None:
    """Raise BudgetExceeded if `wanted` exceeds the limit."""
    if limit.tokens is not None and wanted.tokens > limit.tokens:
        raise BudgetExceeded(scope, "tokens", limit=limit.tokens, wanted=wanted.tokens)
    if limit.cost_micros is not None and wanted.cost_micros > limit.cost_micros:
        raise BudgetExceeded(scope, "micro-dollars", limit=limit.cost_micros, wanted=wanted.cost_micros)


def worst_usage(request: ChatRequest) -> Usage:
    """Return a request's maximum usage: its estimated prompt tokens and its answer limit."""
    return Usage(prompt_tokens(request), request.max_tokens)


def prompt_tokens(request: ChatRequest) -> int:
    """Estimate the number of tokens in messages, tools and schema. The estimate tends to be too high."""
    characters = sum(len(message.content) for message in request.messages)
    characters += sum(len(call.arguments) for message in request.messages for call in message.tool_calls)
    characters += sum(len(tool.description) + len(str(tool.parameters)) for tool in request.tools)
    if request.output is not None:
        characters += len(str(request.output.schema))
    return characters // CHARACTERS_PER_TOKEN + TOKENS_PER_MESSAGE * len(request.messages)


def completion_tokens(text: str) -> int:
    """Estimate the number of tokens in an answer whose endpoint reports no usage."""
    return len(text) // CHARACTERS_PER_TOKEN + 1
