"""The alerts: rules that Prometheus accepts, that fire when they should and only then (RT-24)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import prometheus_client
import pytest
import yaml

from gateway.routes.metrics import SYSTEM
from orchestrator.telemetry import metrics

ROOT = Path(__file__).resolve().parents[3]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
CASES = yaml.load(Path(__file__).with_name("alert_cases.yaml").read_text(), yaml.CSafeLoader)
RUNBOOK = ROOT / "docs" / "operate.md"
OBSERVE = ROOT / "docs" / "observe.md"
HOUR = 60
THRESHOLD = re.compile(r"> ((?!0$)[0-9.]+)$")
"""Of a rule that compares with a number; nothing is near to `== 0` and `> 0`."""
PROMTOOL = shutil.which("promtool")

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="Debian's package prometheus is not installed")


def rules() -> list[dict[str, Any]]:
    return [
        rule for group in yaml.load(ALERTS.read_text(), yaml.CSafeLoader)["groups"] for rule in group["rules"]
    ]


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["promtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_promtool
def test_prometheus_accepts_rules_and_configuration() -> None:
    for arguments in (("rules", ALERTS), ("config", ALERTS.with_name("prometheus.yml"))):
        checked = promtool("check", *arguments)
        assert checked.returncode == 0, checked.stdout + checked.stderr


ALL = pytest.mark.parametrize("alert", [rule["alert"] for rule in rules()])


@needs_promtool
@ALL
def test_an_alert_fires_when_it_should_and_not_a_minute_earlier(alert: str, tmp_path: Path) -> None:
    (rule,) = (rule for rule in rules() if rule["alert"] == alert)
    for case in CASES[alert]["fires"]:
        begins = case["holds_from"] + int(rule["for"].removesuffix("m"))
        assert _firing(ALERTS, alert, case["series"], [begins - 1], tmp_path) == 0, case
        assert _firing(ALERTS, alert, case["series"], [begins], tmp_path) == 1, case


@needs_promtool
@ALL
def test_an_alert_stays_quiet_just_below(alert: str, tmp_path: Path) -> None:
    for series in CASES[alert]["stays_quiet"]:
        assert _firing(ALERTS, alert, series, range(HOUR), tmp_path) == 0, series


@needs_promtool
@pytest.mark.parametrize("alert", [rule["alert"] for rule in rules() if THRESHOLD.search(rule["expr"])])
def test_the_cases_are_near_the_threshold(alert: str, tmp_path: Path) -> None:
    """With a threshold a fifth lower what was quiet fires; with one a fifth higher what fired is quiet."""
    lower, higher = (_with_threshold(alert, factor, tmp_path) for factor in (0.8, 1.2))
    for case in CASES[alert]["fires"]:
        assert _firing(higher, alert, case["series"], range(HOUR), tmp_path) == 0, case
    assert _firing(lower, alert, CASES[alert]["stays_quiet"][0], range(HOUR), tmp_path) > 0


def _with_threshold(alert: str, factor: float, folder: Path) -> Path:
    told = yaml.load(ALERTS.read_text(), yaml.CSafeLoader)
    for rule in (rule for group in told["groups"] for rule in group["rules"]):
        if rule["alert"] == alert:
            rule["expr"] = THRESHOLD.sub(lambda found: f"> {float(found[1]) * factor}", rule["expr"])
    path = folder / f"alerts-{factor}.yml"
    path.write_text(yaml.safe_dump(told))
    return path


def _firing(rule_file: Path, alert: str, series: dict[str, str], minutes: Iterable[int], folder: Path) -> int:
    """At how many of these minutes promtool finds alerts of this name; it is told none, and lists what it got."""
    tests = {
        "rule_files": [str(rule_file)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [
                    {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []} for minute in minutes
                ],
            }
        ],
    }
    path = folder / "tests.yml"
    path.write_text(yaml.safe_dump(tests))
    done = promtool("test", "rules", path)
    got = re.findall(r"Labels:\{alertname=", done.stdout + done.stderr)
    assert (done.returncode == 0) == (not got), done.stdout + done.stderr
    return len(got)


def test_every_alert_links_to_its_section_of_the_runbook() -> None:
    """Each says what it means and what to do; `docs/observe.md` says why its threshold is what it is."""
    sections = dict(
        re.findall(r"^### (Parley\w+)\n\n(.+?)(?=\n\n#)", RUNBOOK.read_text(), re.MULTILINE | re.DOTALL)
    )
    argued = dict(re.findall(r"^\| `(Parley\w+)` \| (.+?) \|$", OBSERVE.read_text(), re.MULTILINE))
    names = [rule["alert"] for rule in rules()]
    assert list(sections) == names
    assert list(argued) == names
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/operate.md#{rule['alert'].lower()}"
        assert "**Do:**" in sections[rule["alert"]], rule["alert"]


def test_the_operators_rule_is_the_same() -> None:
    told = yaml.load((ROOT / "k8s" / "base" / "alerts.yaml").read_text(), yaml.CSafeLoader)
    assert told["spec"] == yaml.load(ALERTS.read_text(), yaml.CSafeLoader)


def test_alerts_and_dashboard_ask_for_metrics_that_there_are() -> None:
    assert metrics.TURNS is not None
    known: set[str] = set()
    for family in (*prometheus_client.REGISTRY.collect(), *SYSTEM.collect()):
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
