"""CO-2: budgets of tokens and cost per call, turn, session and day."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import BudgetExceeded
from orchestrator.models.budget import (
    DAY_S,
    BudgetLimits,
    Budgets,
    InProcessSpending,
    Limit,
    Price,
    Spending,
    worst_usage,
)
from orchestrator.ports.language_model import CallMetadata, ChatMessage, ChatRequest, ChatRole, Usage
from orchestrator.ports.spending import Spent
from orchestrator.types import SessionId, TenantId, TurnId, UserId

ONE, OTHER = SessionId("session_one"), SessionId("session_other")
PRICE = Price(per_million_prompt=2.0, per_million_completion=8.0).of


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def make_request(max_tokens: int = 100) -> ChatRequest:
    return ChatRequest(
        model="small",
        messages=(ChatMessage(ChatRole.USER, "x" * 30),),
        metadata=CallMetadata("nlu_think", "1", ONE, TurnId("turn")),
        max_tokens=max_tokens,
        timeout_s=1,
    )


WORST = worst_usage(make_request()).total_tokens


def make_budgets(clock: Clock | None = None, **limits: Limit) -> tuple[Budgets, InProcessSpending]:
    clock = clock or Clock()
    store = InProcessSpending(clock)
    return Budgets(BudgetLimits(**limits), store, clock), store


async def test_a_call_over_its_own_limit_is_refused_by_name():
    budgets, _ = make_budgets(call=Limit(tokens=WORST - 1))
    turn = Spending()

    with pytest.raises(BudgetExceeded) as caught:
        await budgets.reserve(make_request(), PRICE, turn, ONE)

    assert (caught.value.scope, caught.value.unit) == ("call", "tokens")
    assert turn.spent == Spent()


async def test_cost_is_limited_as_tokens_are():
    worst = PRICE(worst_usage(make_request()))
    budgets, _ = make_budgets(call=Limit(cost_micros=worst.cost_micros - 1))

    with pytest.raises(BudgetExceeded, match="micro-dollars"):
        await budgets.reserve(make_request(), PRICE, Spending(), ONE)


def test_a_price_per_million_counts_in_millionths():
    assert PRICE(Usage(1_000_000, 500_000)) == Spent(1_500_000, 6_000_000)


async def test_what_was_not_used_can_be_spent_again():
    budgets, _ = make_budgets(turn=Limit(tokens=WORST + 10))
    turn = Spending()

    reservation = await budgets.reserve(make_request(), PRICE, turn, ONE)
    await budgets.charge(reservation, Spent(10, 20))
    await budgets.reserve(make_request(), PRICE, turn, ONE)

    assert turn.spent.tokens == WORST + 10


async def test_a_session_is_limited_over_its_turns_and_alone():
    budgets, _ = make_budgets(session=Limit(tokens=WORST))

    await budgets.reserve(make_request(), PRICE, Spending(), ONE)
    with pytest.raises(BudgetExceeded, match="session"):
        await budgets.reserve(make_request(), PRICE, Spending(), ONE)

    await budgets.reserve(make_request(), PRICE, Spending(), OTHER)


async def test_a_user_is_limited_over_all_sessions_of_a_day_and_of_one_tenant():
    clock = Clock()
    budgets, _ = make_budgets(clock, user_day=Limit(tokens=WORST))
    acme, ada, bob = TenantId("acme"), UserId("ada"), UserId("bob")

    await budgets.reserve(make_request(), PRICE, Spending(), ONE, acme, ada)
    with pytest.raises(BudgetExceeded, match="user and day") as caught:
        await budgets.reserve(make_request(), PRICE, Spending(), OTHER, acme, ada)
    assert caught.value.final

    for session, tenant, user in ((OTHER, acme, bob), (OTHER, TenantId("bolt"), ada), (ONE, acme, None)):
        await budgets.reserve(make_request(), PRICE, Spending(), session, tenant, user)
    with pytest.raises(BudgetExceeded, match="user and day"):
        await budgets.reserve(make_request(), PRICE, Spending(), ONE, acme)
    clock.now += DAY_S
    await budgets.reserve(make_request(), PRICE, Spending(), ONE, acme, ada)


async def test_a_refusal_takes_nothing_from_any_scope():
    budgets, store = make_budgets(session=Limit(tokens=10 * WORST), day=Limit(tokens=WORST - 1))
    turn = Spending()

    with pytest.raises(BudgetExceeded):
        await budgets.reserve(make_request(), PRICE, turn, ONE)

    assert turn.spent == Spent()
    assert await store.add(f"session:{ONE}", Spent(), keep_s=1) == Spent()


async def test_a_call_across_midnight_is_settled_on_the_day_it_began():
    clock = Clock()
    budgets, store = make_budgets(clock, day=Limit(tokens=WORST))
    day = int(clock.now // DAY_S)
    reservation = await budgets.reserve(make_request(), PRICE, Spending(), ONE)

    clock.now += DAY_S
    await budgets.charge(reservation, Spent(7, 0))

    assert (await store.add(f"day:{day}", Spent(), keep_s=1)).tokens == 7
    assert (await store.add(f"day:{day + 1}", Spent(), keep_s=1)).tokens == 0


async def test_counters_in_process_are_forgotten_when_their_time_is_over():
    clock = Clock()
    store = InProcessSpending(clock)

    await store.add("day:1", Spent(5, 1), keep_s=10)
    clock.now += 9
    assert await store.add("day:1", Spent(1, 1), keep_s=10) == Spent(6, 2)
    clock.now += 10
    assert await store.add("day:1", Spent(1, 1), keep_s=10) == Spent(1, 1)


@given(
    st.integers(WORST, 6 * WORST),
    st.lists(st.tuples(st.sampled_from([ONE, OTHER]), st.integers(0, WORST), st.booleans()), max_size=30),
)
def test_no_order_of_calls_passes_a_limit(limit, calls):
    """Usage never exceeds reservations, and calls overlap."""

    async def run() -> None:
        budgets, _ = make_budgets(session=Limit(tokens=limit), day=Limit(tokens=limit))
        turn = Spending()
        open_calls: list = []
        settled = 0
        for session, used, settle_first in calls:
            if settle_first and open_calls:
                reservation, actual = open_calls.pop(0)
                await budgets.charge(reservation, Spent(actual, 0))
                settled += actual
            try:
                open_calls.append((await budgets.reserve(make_request(), PRICE, turn, session), used))
            except BudgetExceeded:
                assert turn.spent.tokens + WORST > limit
            assert turn.spent.tokens == settled + WORST * len(open_calls) <= limit

    asyncio.run(run())


async def test_a_tenant_at_its_limit_leaves_the_others_alone():
    """CO-2: per day, and per minute, so that no tenant uses up the provider's rate limit."""
    one, other = TenantId("one"), TenantId("other")
    for scope in ("tenant_minute", "tenant_day"):
        clock = Clock()
        budgets, _ = make_budgets(clock, **{scope: Limit(tokens=WORST)})
        await budgets.reserve(make_request(), PRICE, Spending(), ONE, one)

        with pytest.raises(BudgetExceeded) as caught:
            await budgets.reserve(make_request(), PRICE, Spending(), OTHER, one)
        await budgets.reserve(make_request(), PRICE, Spending(), OTHER, other)
        clock.now += 60 if scope == "tenant_minute" else DAY_S
        await budgets.reserve(make_request(), PRICE, Spending(), ONE, one)

        assert caught.value.scope == scope
