"""Submission: a worker is woken for new work only, and after the caller has noted the receipt."""

from __future__ import annotations

import pytest

from orchestrator.runtime.submit import Submitter
from orchestrator.turns.turn import Receipt
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.testing.inbox import MemoryInbox
from parley.testing.live import MemoryWakeup
from parley.testing.scheduled import MemoryScheduledEvents
from parley.testing.store import MemoryStore
from tests.contract.factories import opening

SESSION = SessionId("s")
HELLO = opening(SESSION, idempotency_key="k")


@pytest.fixture
def submitter() -> Submitter:
    store = MemoryStore()
    return Submitter(inbox=MemoryInbox(store), scheduled=MemoryScheduledEvents(store), wakeup=MemoryWakeup())


async def woken(submitter: Submitter) -> list[SessionId]:
    return await submitter.wakeup.take(limit=10, timeout_s=0.0)


async def test_a_submission_wakes_a_worker_until_its_turn_has_finished(submitter: Submitter) -> None:
    receipt = await submitter.submit(HELLO)
    assert await woken(submitter) == [SESSION]
    assert (await submitter.submit(HELLO)).turn_id == receipt.turn_id
    assert await woken(submitter) == [SESSION]

    await submitter.inbox.cancel(DEFAULT_TENANT, receipt.turn_id)
    await submitter.submit(HELLO)
    assert await woken(submitter) == []


async def test_no_worker_is_woken_before_the_receipt_is_noted(submitter: Submitter) -> None:
    async def refuse(receipt: Receipt) -> None:
        assert await woken(submitter) == []
        raise RuntimeError(receipt.turn_id)

    with pytest.raises(RuntimeError):
        await submitter.submit(HELLO, refuse)
    assert await woken(submitter) == []
