"""What is said by `understand` besides words that System 1 reads for sure: clicks, changes of a plan, and what is left
to a model (RT-5). Judged by what was called, what the store holds, and what the user was told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.openai import Endpoint
from orchestrator.testing.scripted_model import Answer, Rule, Script, ScriptedModel
from orchestrator.turns.turn import TurnStatus
from tests.unit.interruptions.judge import ASK
from tests.unit.interruptions.setting import Setting, write_mailroom

UNSURE = "my sister would be happier about it, by the way"
MEANT = Answer(
    json={
        "kind": "correction",
        "flows": [{"dact": "send_parcel", "score": 0.9}],
        "slots": {"recipient": "Ann"},
        "target": "the recipient",
        "digression": None,
    }
)


@pytest.fixture
async def model() -> AsyncIterator[tuple[ScriptedModel, ModelPool]]:
    with ScriptedModel(Script(rules=(Rule(match="my sister", replies=(MEANT,)),))) as server:
        pool = ModelPool({"default": Endpoint(base_url=server.base_url)}, model="scripted")
        yield server, pool
        await pool.aclose()


async def test_what_system_1_is_unsure_of_waits_for_its_turn_where_the_model_reads_it(
    tmp_path: Any, model: tuple[ScriptedModel, ModelPool]
) -> None:
    """The model would have stopped the turn; it is asked once, when nothing is at work any more."""
    server, pool = model
    setting = Setting.of(str(write_mailroom(tmp_path / "mailroom")), models=pool)
    first = await setting.submit(ASK)
    runner = setting.runner()
    running = asyncio.create_task(runner.run(setting.session))
    await setting.reached["letters"].wait()
    second = await setting.submit(UNSURE)
    await runner.renew()
    assert server.requests == []
    setting.go_on()
    await running

    assert (await setting.read(first)).status is TurnStatus.DONE
    assert setting.calls == {("label", "bob"): 1, ("parcel", "bob"): 1}
    said = await setting.read(second)
    assert len(server.requests_for("nlu_think")) == 1
    assert said.result is not None
    assert "with Bob as the recipient. What should happen now?" in said.result["reply"]
