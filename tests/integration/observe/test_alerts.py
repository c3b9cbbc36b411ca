"""Alerts: rules that Prometheus accepts, and that fire exactly when they should (RT-24)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
RUNBOOK = ROOT / "docs" / "runbook.md"
OBSERVE = ROOT / "docs" / "observe.md"
HOUR = 60
THRESHOLD = re.compile(r"> ((?!0$)[0-9.]+)$")
"""Pattern of rules with a threshold, except `== 0` and `> 0`, which have no near values."""
GOT = re.compile(
    r"name: ([^\n]+),\n +alertname: \w+, time: (?:(\d+)h)?(\d+)m, \n +exp:\[\], \n(.*?)\n {12}\]", re.DOTALL
)
"""Pattern of promtool's output for a minute with alerts."""
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


def names_with_threshold() -> list[str]:
    return [rule["alert"] for rule in rules() if THRESHOLD.search(rule["expr"])]


@dataclass(frozen=True)
class Case:
    """A named test case for promtool. `factor`: multiplies the thresholds."""

    name: str
    alert: str
    series: dict[str, str]
    minutes: Sequence[int]
    factor: float = 1.0


def every_case() -> Iterator[Case]:
    for rule in rules():
        alert = rule["alert"]
        for at, case in enumerate(CASES[alert]["fires"]):
            begins = case["holds_from"] + int(rule["for"].removesuffix("m"))
            yield Case(f"{alert} fires {at}", alert, case["series"], (begins - 1, begins))
            if alert in names_with_threshold():
                yield Case(f"{alert} fires {at}, higher", alert, case["series"], range(HOUR), 1.2)
        for at, series in enumerate(CASES[alert]["stays_quiet"]):
            yield Case(f"{alert} is quiet {at}", alert, series, range(HOUR))
        if alert in names_with_threshold():
            series = CASES[alert]["stays_quiet"][0]
            yield Case(f"{alert} is quiet 0, lower", alert, series, range(HOUR), 0.8)


@pytest.fixture(scope="module")
def fired(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """Return the minutes with an alert by case name, all in one run, because promtool starts slowly."""
    folder = tmp_path_factory.mktemp("promtool")
    cases = list(every_case())
    kinds = {
        (case.alert, case.factor): [
            one for one in cases if (one.alert, one.factor) == (case.alert, case.factor)
        ]
        for case in cases
    }
    files = [_write(folder, alert, factor, alike) for (alert, factor), alike in kinds.items()]
    done = promtool("test", "rules", *files)
    said = done.stdout + done.stderr
    found: dict[str, list[int]] = {case.name: [] for case in cases}
    assert len(found) == len(cases)
    for name, hours, minute, got in GOT.findall(said):
        found[name] += [60 * int(hours or 0) + int(minute)] * got.count("Labels:{alertname=")
    assert sum(map(len, found.values())) == said.count("Labels:{alertname=") > 0, said
    return found


def _write(folder: Path, alert: str, factor: float, cases: Sequence[Case]) -> Path:
    """Write a rule with another threshold, and its cases. Expecting no alerts, promtool lists the actual ones."""
    (rule,) = (rule for rule in rules() if rule["alert"] == alert)
    if factor != 1.0:
        rule["expr"] = THRESHOLD.sub(lambda found: f"> {float(found[1]) * factor}", rule["expr"])
    changed = folder / f"{alert}-{factor}.rules.yml"
    changed.write_text(yaml.safe_dump({"groups": [{"name": "alone", "rules": [rule]}]}))
    tests = [
        {
            "name": case.name,
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
            "alert_rule_test": [
                {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []} for minute in case.minutes
            ],
        }
        for case in cases
    ]
    told = {"rule_files": [str(changed)], "evaluation_interval": "1m", "tests": tests}
    path = folder / f"{alert}-{factor}.yml"
    path.write_text(yaml.safe_dump(told))
    return path


@needs_promtool
@ALL
def test_an_alert_fires_when_it_should_and_not_a_minute_earlier(
    alert: str, fired: dict[str, list[int]]
) -> None:
    (rule,) = (rule for rule in rules() if rule["alert"] == alert)
    for at, case in enumerate(CASES[alert]["fires"]):
        begins = case["holds_from"] + int(rule["for"].removesuffix("m"))
        assert fired[f"{alert} fires {at}"] == [begins], case


@needs_promtool
@ALL
def test_an_alert_stays_quiet_just_below(alert: str, fired: dict[str, list[int]]) -> None:
    for at, series in enumerate(CASES[alert]["stays_quiet"]):
        assert fired[f"{alert} is quiet {at}"] == [], series


@needs_promtool
@pytest.mark.parametrize("alert", names_with_threshold())
def test_the_cases_are_near_the_threshold(alert: str, fired: dict[str, list[int]]) -> None:
    """With a threshold lowered by a fifth, quiet cases fire; raised by a fifth, firing cases are quiet."""
    for at, case in enumerate(CASES[alert]["fires"]):
        assert fired[f"{alert} fires {at}, higher"] == [], case
    assert fired[f"{alert} is quiet 0, lower"] != []


def test_every_alert_links_to_its_section_of_the_runbook() -> None:
    """Each explains its meaning and the solution; `docs/observe.md` explains the threshold."""
    sections = dict(
        re.findall(r"^### (Parley\w+)\n\n(.+?)(?=\n\n#|\n?\Z)", RUNBOOK.read_text(), re.MULTILINE | re.DOTALL)
    )
    argued = dict(re.findall(r"^\| `(Parley\w+)` \| (.+?) \|$", OBSERVE.read_text(), re.MULTILINE))
    names = [rule["alert"] for rule in rules()]
    assert list(sections) == names
    assert list(argued) == names
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
        assert "**Do:**" in sections[rule["alert"]], rule["alert"]


def test_the_operators_rule_is_the_same() -> None:
    told = yaml.load(
        (ROOT / "k8s" / "components" / "prometheus" / "alerts.yaml").read_text(), yaml.CSafeLoader
    )
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
