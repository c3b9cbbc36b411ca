"""A real Prometheus observes a busy system: metrics of alerts and dashboard exist and change (RT-24)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import yaml

from tests.cases import for_each
from tests.integration.chaos.fleet import ROOT
from tests.integration.observe.busy import MODEL, PRICE, Day, busy_day

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="Debian's package prometheus is not installed"
)

DASHBOARD = orjson.loads((ROOT / "deploy" / "grafana" / "parley.json").read_bytes())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RULES = [
    rule
    for group in yaml.load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text(), yaml.CSafeLoader)[
        "groups"
    ]
    for rule in group["rules"]
]
DAY = "30m"
"""Longer than the run."""


def asked_by_panels() -> list[str]:
    """Return all queries of the dashboard, over the whole run instead of Grafana's interval."""
    found = [target["expr"] for panel in PANELS for target in panel["targets"]]
    return [query.replace("$__rate_interval", DAY).replace("$__range", DAY) for query in found]


def names_asked_for() -> list[str]:
    asked = [*asked_by_panels(), *(rule["expr"] for rule in RULES)]
    return sorted({name for query in asked for name in re.findall(r"parley_\w+", query)})


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    with busy_day(tmp_path_factory.mktemp("busy")) as day:
        yield day


@needs_prometheus
@pytest.mark.slow
@for_each("name", names_asked_for())
def test_what_is_asked_for_moves(day: Day, name: str) -> None:
    """A counter has counted, a gauge has changed; a constant metric is useless in a panel."""
    counted = f"max_over_time({name}[{DAY}]) > 0" if name.endswith(("_total", "_bucket", "_count")) else None
    assert day.prometheus.ask(counted or f"changes({name}[{DAY}]) > 0"), name


@needs_prometheus
@pytest.mark.slow
@for_each("query", asked_by_panels())
def test_a_panel_has_data(day: Day, query: str) -> None:
    assert not day.prometheus.refuses(query)
    assert day.prometheus.ask(query), query


PHASES = ("load", "understand", "carry_out", "execute", "respond", "record", "commit")
LABELS = {
    "__name__", "instance", "job", "scheduled", "le", "state", "kind", "urgency", "status", "phase", "model", "prompt",
    "outcome",
    "scope", "tool", "rung", "module", "check", "flow", "method", "route", "code",
}  # fmt: skip
"""Labels with values limited by the code, a domain or a deployment. None identifies sessions, users or tenants."""
MOST_SERIES = 1_000
"""Maximum number of series of a process, which Prometheus handles easily."""


@needs_prometheus
@pytest.mark.slow
@for_each(
    ("query", "value"),
    [
        ("sum(parley_quarantined_turns)", 1),
        ("max(parley_unfinished_turns)", 0),
        ("sum(parley_model_breaker_open)", 0),
        (f"max(max_over_time(parley_model_breaker_open{{model='{MODEL}'}}[{DAY}]))", 1),
        ("sum(parley_turns_fenced_total)", 1),
        ("sum(parley_turn_attempts_failed_total)", 2),
        ('sum(parley_recoveries_total{rung="retry"})', 1),
        ('sum(parley_tool_calls_total{tool="flight_search",status="server_error"})', 2),
        ('sum(parley_model_calls_total{outcome="model_failed"})', 1),
        (f"round(1e6 * sum(parley_model_cost_total) - {PRICE} * sum(parley_model_tokens_total))", 0),
        (
            f"count(parley_turn_phase_seconds_count{{phase=~'{'|'.join(PHASES)}'}} > 0) >= bool {len(PHASES)}",
            1,
        ),
        ('sum(parley_http_problems_total{code="not_found"})', 1),
    ],
)
def test_it_says_what_happened(day: Day, query: str, value: float) -> None:
    (series,) = day.prometheus.ask(query)
    assert float(series["value"][1]) == value


@needs_prometheus
@pytest.mark.slow
def test_labels_are_few_and_name_nobody(day: Day) -> None:
    told = day.prometheus.ask('{__name__=~"parley_.+"}')
    assert {label for series in told for label in series["metric"]} <= LABELS
    values = {value for series in told for label, value in series["metric"].items() if label != "route"}
    assert not [
        value for value in values if re.search(r"(session|turn|run|tenant|user|key)_[0-9a-f]{8}", value)
    ]
    per_process = day.prometheus.ask('max(count by (instance) ({__name__=~"parley_.+"}))')
    assert float(per_process[0]["value"][1]) < MOST_SERIES


@for_each("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        assert (unit == "s") == ("_seconds" in target["expr"] and "_count" not in target["expr"]), target[
            "expr"
        ]
        assert target["legendFormat"]


def test_panels_are_told_apart_and_do_not_overlap() -> None:
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    places = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(places)) == len(places)
