"""The alerts: rules that Prometheus accepts, that fire when they should and only then (RT-24)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import orjson
import prometheus_client
import pytest
import yaml

import gateway.routes.metrics  # what the gateway alone tells
from orchestrator.telemetry import metrics

ROOT = Path(__file__).resolve().parents[3]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
CASES = yaml.safe_load(Path(__file__).with_name("alert_cases.yaml").read_text())
AFTER = "29m"
PROMTOOL = shutil.which("promtool")

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="Debian's package prometheus is not installed")


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["promtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_promtool
def test_prometheus_accepts_rules_and_configuration() -> None:
    for arguments in (("rules", ALERTS), ("config", ALERTS.with_name("prometheus.yml"))):
        checked = promtool("check", *arguments)
        assert checked.returncode == 0, checked.stdout + checked.stderr


@needs_promtool
@pytest.mark.parametrize("alert", [rule["alert"] for rule in rules()])
def test_an_alert_fires_when_it_should_and_only_then(alert: str, tmp_path: Path) -> None:
    """promtool compares labels; that it fails where none fires shows that the series make the difference."""
    for case, expected in (("fires", 1), ("stays_quiet", 0)):
        assert _firing(alert, CASES[alert][case], tmp_path) == expected, case


def _firing(alert: str, series: dict[str, str], folder: Path) -> int:
    """How many alerts of this name promtool finds after half an hour: it is told none and lists what it got."""
    tests = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [{"eval_time": AFTER, "alertname": alert, "exp_alerts": []}],
            }
        ],
    }
    path = folder / "tests.yml"
    path.write_text(yaml.safe_dump(tests))
    done = promtool("test", "rules", path)
    got = re.findall(r"Labels:\{alertname=", done.stdout + done.stderr)
    assert (done.returncode == 0) == (not got), done.stdout + done.stderr
    return len(got)


def test_the_operators_rule_is_the_same() -> None:
    told = yaml.safe_load((ROOT / "k8s" / "base" / "alerts.yaml").read_text())
    assert told["spec"] == yaml.safe_load(ALERTS.read_text())


def test_alerts_and_dashboard_ask_for_metrics_that_there_are() -> None:
    assert gateway.routes.metrics.STORE_ANSWERS is not None
    assert metrics.TURNS is not None
    known: set[str] = set()
    for family in prometheus_client.REGISTRY.collect():
        known |= {family.name + ending for ending in ("", "_total", "_bucket", "_count", "_sum")}
    dashboard = orjson.loads((ROOT / "deploy" / "grafana" / "parley.json").read_bytes())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    asked = {
        name
        for query in [*queries, *(rule["expr"] for rule in rules())]
        for name in re.findall(r"parley_\w+", query)
    }
    assert len(asked) > 20
    assert asked <= known
