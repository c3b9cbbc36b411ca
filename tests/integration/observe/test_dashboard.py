"""The dashboard: queries that Prometheus accepts, described panels, and labels that identify no user (RT-24)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import orjson
import prometheus_client
import yaml

from tests.cases import for_each
from tests.integration.chaos.fleet import ROOT
from tests.integration.observe.test_alerts import needs_promtool

DASHBOARD = orjson.loads((ROOT / "deploy" / "grafana" / "parley.json").read_bytes())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

LABELS = {
    "scheduled", "state", "kind", "urgency", "status", "phase", "model", "prompt", "outcome", "scope", "tool", "rung",
    "module", "check", "flow", "method", "route", "code",
    "queue",
}  # fmt: skip
"""Labels with values limited by the code, a domain or a deployment. None identifies sessions, users or tenants."""


@needs_promtool
def test_prometheus_accepts_the_queries(tmp_path: Path) -> None:
    queries = [target["expr"] for panel in PANELS for target in panel["targets"]]
    rules = [
        {
            "record": f"panel:{number}",
            "expr": query.replace("$__rate_interval", "5m").replace("$__range", "1h"),
        }
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))

    checked = subprocess.run(
        ["promtool", "check", "rules", file], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_labels_are_few_and_name_nobody() -> None:
    ours = {
        family: collector
        for collector, families in prometheus_client.REGISTRY._collector_to_names.items()
        for family in families
        if family.startswith("parley_")
    }
    assert len(ours) > 20
    assert {label for metric in ours.values() for label in getattr(metric, "_labelnames", ())} <= LABELS


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
