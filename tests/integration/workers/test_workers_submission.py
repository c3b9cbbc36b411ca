"""The queue contract: a backend that uses only Celery and the broker (RT-1, RT-5, RT-22, RT-23)."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import Any

import pytest
import redis
from celery import Celery

from orchestrator.ports.tasks import SUBMIT_TURN
from tests.celery_clients import celery_client
from tests.integration.chaos.fleet import ROOT, Fleet, fleet, wait_until

DOCUMENT = ROOT / "docs" / "submit-by-celery.md"


@pytest.fixture(scope="module")
def crew(database: str, module_redis_url: str, tmp_path_factory: pytest.TempPathFactory):
    settings = {"PARLEY_LEASE_TTL_S": "3"}
    with fleet(database, module_redis_url, tmp_path_factory.mktemp("crew"), settings) as crew:
        crew.start(1)
        yield crew


@pytest.fixture
def backend(crew: Fleet):
    with celery_client(crew.redis_url) as app:
        yield Backend(app)


class Backend:
    """A foreign program that sends a task and reads its result."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def submit(self, **arguments: Any) -> dict[str, Any]:
        sent = self._app.send_task(SUBMIT_TURN, kwargs=arguments, queue="submissions")
        return sent.get(timeout=30, interval=0.05)


async def test_a_session_is_made_and_its_turn_answered(crew: Fleet, backend: Backend) -> None:
    done = await asyncio.to_thread(
        backend.submit, session_id="made-here", domain="counting", text="say", wait=20
    )

    assert (done["session_id"], done["seq"], done["epoch"], done["status"]) == ("made-here", 1, 1, "done")
    assert done["text"] == "say"
    assert done["reply"] == "1"


async def test_a_message_in_its_documented_form_needs_no_client(crew: Fleet) -> None:
    """As `docs/submit-by-celery.md` documents the message for other languages."""
    text = DOCUMENT.read_text()
    (form,) = re.findall(r"```json\n(.*?)```", text.partition("## Other languages")[2], re.DOTALL)
    arguments = {"session_id": "from-elsewhere", "domain": "counting", "text": "hello", "wait": 20}
    message = json.loads(form.replace("<id>", "message-1"))
    message["body"] = base64.b64encode(json.dumps([[], arguments, {}]).encode()).decode()
    with redis.Redis.from_url(crew.redis_url) as server:
        server.lpush("submissions", json.dumps(message))
        wait_until(lambda: server.exists("celery-task-meta-message-1"), within_s=60, what="there is a result")
        result = json.loads(server.get("celery-task-meta-message-1"))

    assert (result["status"], result["result"]["status"], result["result"]["count"]) == ("SUCCESS", "done", 1)


async def test_without_waiting_the_receipt_is_given(crew: Fleet, backend: Backend) -> None:
    first = await asyncio.to_thread(backend.submit, session_id="receipts", text="say", idempotency_key="k")
    again = await asyncio.to_thread(backend.submit, session_id="receipts", text="say", idempotency_key="k")

    assert first["seq"] == 1
    assert again["turn_id"] == first["turn_id"]


async def test_more_waiting_submissions_than_threads_still_end(crew: Fleet, backend: Backend) -> None:
    """Eight threads wait for turns, and no thread remains for the wake-up."""
    done = await asyncio.gather(
        *(
            asyncio.to_thread(backend.submit, session_id=f"full-{n}", text="wait 0.1", wait=25)
            for n in range(12)
        )
    )

    assert [one["status"] for one in done] == ["done"] * 12


async def test_a_refusal_is_a_failure_with_code_and_reason(crew: Fleet, backend: Backend) -> None:
    with pytest.raises(Exception, match="is empty") as caught:
        await asyncio.to_thread(backend.submit, session_id="s", text="")

    assert type(caught.value).__name__ == "TaskRefused"
    assert caught.value.args == ("invalid_input", "text: is empty; send the user's message.", "text")
