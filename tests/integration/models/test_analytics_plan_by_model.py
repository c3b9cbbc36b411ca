"""“Why did sales drop in March”, planned, replanned and judged by a model over the real tables (PL-1 … PL-3, FS-7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.openai import Endpoint
from orchestrator.nlu.readers.system1 import System1
from orchestrator.simulator import Simulator
from orchestrator.testing.scripted_model import Answer, Reply, Rule, Script, ScriptedModel
from tests.integration.models.test_plans_by_model import Talk, steps

REQUEST = "why did sales drop in March"
PROFILE = {"dact": "profile", "purpose": "see what there is"}
MONTHS = {
    "dact": "aggregate",
    "slots": {"by": "month"},
    "needs": ["profile"],
    "purpose": "go through the months",
}
COMPARE = {"dact": "compare_months", "needs": ["aggregate"], "purpose": "hold March against February"}
CHART = {
    "dact": "chart",
    "slots": {"by": "month", "kind": "line"},
    "needs": ["compare_months"],
    "purpose": "draw it",
}
REPORT = {"dact": "report_change", "needs": ["compare_months"], "purpose": "write it up"}
SUMMARY = "Retail trade fell in March 2009 with everything else: it was the recession."


@asynccontextmanager
async def talking(**replies: Reply | tuple[Reply, ...]) -> AsyncIterator[Talk]:
    loaded = load_domain("analytics")
    rules = tuple(
        Rule(prompt=prompt, replies=reply if isinstance(reply, tuple) else (reply,))
        for prompt, reply in replies.items()
    )
    sections = {"nlu": {"mode": "system1"}, "plans": {"model": "on", "tree_search": "off"}}
    with ScriptedModel(Script(rules=rules)) as model:
        pool = ModelPool({"default": Endpoint(base_url=model.base_url)}, model="scripted")
        try:
            system1 = System1.for_domain(loaded.domain)
            simulator = Simulator.of(loaded, sections=sections, models=pool, system1=system1)
            yield Talk(simulator.converse(), model)
        finally:
            await pool.aclose()


async def test_a_model_plans_and_data_pass_from_step_to_step() -> None:
    """The model names neither table, column nor months: the first two are the plan's, the months what a step found."""
    async with talking(
        plan_decompose=steps(PROFILE, MONTHS, COMPARE, CHART, REPORT),
        plan_replan=Answer(json={"decision": "keep"}),
        plan_complete=Answer(json={"complete": True, "missing": [], "summary": SUMMARY}),
    ) as talk:
        turn = await talk.say(REQUEST)
        plan = await talk.plan()
    assert turn["completed"][-1] == "explain_change"
    assert [tool["tool_id"] for tool in turn["tools"]] == [
        "table_profile",
        "table_aggregate",
        "month_compare",
        "chart_draw",
        "change_report",
    ]
    measured = {"table": "employment", "column": "retail_trade"}
    assert all(measured.items() <= tool["arguments"].items() for tool in turn["tools"])
    assert turn["tools"][2]["arguments"]["month"] == "march"
    report = turn["tools"][4]["arguments"]
    assert (report["from_month"], report["to_month"]) == ("2009-02", "2009-03")
    assert "No table has sales" in turn["reply"]
    assert SUMMARY in turn["reply"]
    assert (plan["progress"], plan["state"]) == ("5 of 5", "Completed")


async def test_the_model_prunes_what_the_first_steps_made_unnecessary() -> None:
    """PL-2: after the comparison the model gives the chart up, and says why."""
    pruned = Answer(json={"decision": "change", "steps": [REPORT], "reason": "a chart adds nothing"})
    keep = Answer(json={"decision": "keep"})
    async with talking(
        plan_decompose=steps(PROFILE, COMPARE, CHART, REPORT),
        plan_replan=(keep, pruned, keep),
        plan_complete=Answer(json={"complete": True, "missing": [], "summary": SUMMARY}),
    ) as talk:
        turn = await talk.say(REQUEST)
    assert "chart_draw" not in [tool["tool_id"] for tool in turn["tools"]]
    assert "a chart adds nothing" in turn["reply"]
