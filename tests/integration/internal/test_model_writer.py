"""Model calls of background flows count for the session's budget (CO-2)."""

from __future__ import annotations

from typing import Any

import pytest

from internal_flows.session.summarize_session import JUDGED_BY, PROMPT, summary_schema
from orchestrator.bootstrap import open_ports
from orchestrator.errors import BudgetExceeded
from orchestrator.settings import Settings
from orchestrator.types import SessionId, TenantId, UserId
from parley.testing.scripted_model import Answer, Rule, Script, ScriptedModel
from tests.configuration import default_config
from workers.internal.model_writer import ModelWriter

ACME, BOLT = TenantId("acme"), TenantId("bolt")


@pytest.mark.parametrize(
    ("budget", "is_counted_for_others"), [("tokens_per_user_day", False), ("tokens_per_tenant_day", True)]
)
async def test_a_summary_is_counted_for_its_user_and_tenant(
    database_url: str, redis_url: str, budget: str, *, is_counted_for_others: bool
) -> None:
    written = Answer(json={"summary": "They look for flights.", "findings": []})
    with ScriptedModel(Script(rules=(Rule(prompt=PROMPT, replies=(written,)),))) as model:
        places: dict[str, Any] = {"database_url": database_url, "redis_url": redis_url}
        async with open_ports(Settings(**places, openai_base_url=model.base_url)) as ports:

            async def ask(tenant: TenantId, user: str, session: str, limit: int) -> None:
                config = default_config({"budgets": {budget: limit}})
                variables = {"max_words": 50, "max_findings": 3, "summary": "", "turns": []}
                await ModelWriter(ports.models, lambda _: config).write(
                    *(PROMPT, variables, summary_schema(200)),
                    judged_by=JUDGED_BY,
                    domain="travel",
                    tenant_id=tenant,
                    user_id=UserId(user),
                    session_id=SessionId(session),
                    run_id="run_1",
                )

            with pytest.raises(BudgetExceeded) as refused:
                await ask(ACME, "ada", "one", 1)
            enough = refused.value.wanted
            await ask(ACME, "ada", "one", enough)
            with pytest.raises(BudgetExceeded):
                await ask(ACME, "ada", "two", enough)
            await ask(BOLT, "ada", "three", enough)
            if is_counted_for_others:
                with pytest.raises(BudgetExceeded):
                    await ask(ACME, "bob", "four", enough)
            else:
                await ask(ACME, "bob", "four", enough)
