"""A mistake in an Internal flow or a schedule is off by name, and all others run (IF-9, IF-15)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from internal_flows.catalogue import Catalogue
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
