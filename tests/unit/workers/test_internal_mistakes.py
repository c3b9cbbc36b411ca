"""Mistakes in a background flow or schedule disable only that flow or schedule (IF-9, IF-15)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from internal_flows.catalogue import Catalogue
from internal_flows.schedule import read_jobs
from internal_flows.stages import InternalFlow
from orchestrator.errors import ConfigurationError
from tests.cases import for_each
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
    with pytest.raises(ConfigurationError, match="forms a cycle"):
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

    assert "unknown tool 'hammer'" in told
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
    """IF-15: every process computes the same time."""

    def seconds(text: str) -> float:
        return datetime.fromisoformat(f"{text}+00:00").timestamp()

    [job] = read_jobs({"report": {"cron": "30 4 * * mon-fri"}}, defaults=()).jobs

    assert job.due(seconds(now)) == seconds(due)
    assert job.following(seconds(due)) == seconds(following)


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("night", "fired"),
    [
        ("2026-03-29", ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]),
        ("2026-10-25", ["10-24 02:30+0200", "10-25 02:30+0200", "10-26 02:30+0100"]),
    ],
    ids=["the hour that is skipped", "the hour that comes twice"],
)
def test_a_job_in_a_zone_runs_once_on_the_nights_of_a_clock_change(night: str, fired: list[str]) -> None:
    """IF-15, RT-29: checks every minute, as by beats, find the same due times in order."""
    [job] = read_jobs({"nightly": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}}, defaults=()).jobs
    middle = datetime.fromisoformat(f"{night}T12:00:00+00:00").timestamp()

    seen = [job.due(middle + 60.0 * minute) for minute in range(-36 * 60, 24 * 60)]

    due = list(dict.fromkeys(seen))[-3:]
    assert [f"{datetime.fromtimestamp(one, BERLIN):%m-%d %H:%M%z}" for one in due] == fired
    assert [job.following(one) for one in due[:-1]] == due[1:]
    assert seen == sorted(seen)


@for_each("zone", ["Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "America/St_Johns"])
@for_each("cron", ["*/30 0-4 * * *", "0 */2 * * *", "30 2 * * sun", "0 0 * * *"])
def test_what_is_due_is_what_follows_whenever_it_is_looked_at(zone: str, cron: str) -> None:
    """IF-15: on the days around each clock change of a year, checks at any time find the next due time."""
    [job] = read_jobs({"nightly": {"cron": cron, "timezone": zone}}, defaults=()).jobs
    changes = clock_changes(zone)
    assert len(changes) == 2

    for change in changes:
        due = job.due(change - DAY_S)
        while due < change + DAY_S:
            following = job.following(due)
            assert following > due
            assert {job.due(at) for at in (due, due + 1, (due + following) / 2, following - 1)} == {due}
            due = following


DAY_S = 86_400


def clock_changes(zone: str) -> list[float]:
    """Return the noons in UTC of 2026 after which a zone has a different offset."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
    offsets = [datetime.fromtimestamp(noon + day * DAY_S, ZoneInfo(zone)).utcoffset() for day in range(366)]
    return [noon + day * DAY_S for day in range(365) if offsets[day] != offsets[day + 1]]


@for_each("zone", ["Europe/Atlantis", "", "../etc/passwd", 5, None])
def test_a_zone_that_does_not_exist_switches_its_job_off(zone: object) -> None:
    jobs, off = read_jobs({"nightly": {"cron": "30 2 * * *", "timezone": zone}}, defaults=())

    assert jobs == []
    assert "timezone" in str(off[0])


@pytest.mark.parametrize("body", [{"cron": "31 4 * *"}, {"cron": 5}, {"cron": "* * * * *", "every_s": 5}])
def test_a_cron_expression_that_names_no_time_is_off(body: dict[str, Any]) -> None:
    jobs, off = read_jobs({"report": body}, defaults=())

    assert jobs == []
    assert "cron" in str(off[0])
