"""A mistake in an Internal flow or a schedule is off by name, and all others run (IF-9, IF-15)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from internal_flows.catalogue import Catalogue
from internal_flows.schedule import read_jobs
from internal_flows.stages import InternalFlow
from orchestrator.errors import ConfigurationError
from workers.internal.catalogue import check_internal_flows


def flow(
    name: str, *depends_on: str, trigger: str = "due", tools: tuple[str, ...] = ()
) -> type[InternalFlow]:
    members: dict[str, Any] = {"name": name, "trigger": trigger, "depends_on": depends_on, "tools": tools}
    return type(name.title(), (InternalFlow,), members)


def test_a_bad_flow_is_off_with_what_depends_on_it_and_the_others_run() -> None:
    catalogue = Catalogue(
        [
            flow("good"),
            flow("greedy", tools=("nothing_like_this",)),
            flow("follower", "greedy"),
            flow("round", "about"),
            flow("about", "round"),
            flow("also_good", "good"),
        ],
        tools={"scratchpad": object()},
    )

    assert set(catalogue.flows) == {"good", "also_good"}
    assert set(catalogue.off) == {"greedy", "follower", "round", "about"}
    assert [node.flow for node in catalogue.new_graph("due")] == ["good", "also_good"]
    with pytest.raises(ConfigurationError, match="nothing_like_this"):
        catalogue.new_run("greedy")
    with pytest.raises(ConfigurationError, match="is a circle"):
        catalogue.new_run("round")


def test_a_name_that_is_used_twice_keeps_its_first_meaning() -> None:
    catalogue = Catalogue([flow("good"), flow("good", trigger="other")])

    assert catalogue.flows["good"].trigger == "due"
    assert "is defined twice" in str(catalogue.off["good"][0])


def test_domain_check_names_bad_flows_and_jobs(tmp_path: Path) -> None:
    (tmp_path / "internal_flows.py").write_text(
        "from internal_flows.stages import InternalFlow\n"
        "class Bad(InternalFlow):\n"
        "    name = 'bad'\n    trigger = 'never'\n    tools = ('hammer',)\n"
    )
    (tmp_path / "internal_flows.yaml").write_text(
        "schedule:\n  repair_state: {evry_s: 5}\n  lost: {every_s: 60}\n"
    )

    told = "\n".join(map(str, check_internal_flows(tmp_path)))

    assert "there is no tool 'hammer'" in told
    assert "schedule.repair_state" in told
    assert "no flow has the trigger 'lost'" in told


@pytest.mark.parametrize(
    ("now", "due", "following"),
    [
        ("2026-11-20T04:30:00", "2026-11-20T04:30:00", "2026-11-23T04:30:00"),
        ("2026-11-22T12:00:00", "2026-11-20T04:30:00", "2026-11-23T04:30:00"),
        ("2026-11-23T04:29:59", "2026-11-20T04:30:00", "2026-11-23T04:30:00"),
    ],
)
def test_a_job_is_due_when_its_cron_expression_says(now: str, due: str, following: str) -> None:
    """IF-15: the same moment wherever it is worked out."""

    def seconds(text: str) -> float:
        return datetime.fromisoformat(f"{text}+00:00").timestamp()

    [job] = read_jobs({"report": {"cron": "30 4 * * mon-fri"}}, defaults=()).jobs

    assert job.due(seconds(now)) == seconds(due)
    assert job.following(seconds(due)) == seconds(following)


@pytest.mark.parametrize("body", [{"cron": "31 4 * *"}, {"cron": 5}, {"cron": "* * * * *", "every_s": 5}])
def test_a_cron_expression_that_names_no_time_is_off(body: dict[str, Any]) -> None:
    jobs, off = read_jobs({"report": body}, defaults=())

    assert jobs == []
    assert "cron" in str(off[0])
