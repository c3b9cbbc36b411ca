"""A real Prometheus scrapes a running gateway and worker, and the dashboard's questions have answers (RT-24)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml

from orchestrator.adapters.postgres.migrate import migrate
from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import ROOT, fleet, wait_until
from tests.integration.observe.running import gateway

CONFIGURATION = ROOT / "deploy" / "prometheus" / "prometheus.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "parley.json"
SCRAPE_EVERY = "1s"


def queries() -> list[str]:
    """Every question of the dashboard, over the last minute instead of what Grafana would choose."""
    panels = orjson.loads(DASHBOARD.read_bytes())["panels"]
    found = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [query.replace("$__rate_interval", "1m").replace("$__range", "1m") for query in found]


@contextmanager
def prometheus(targets: dict[str, str], folder: Path) -> Iterator[str]:
    """Debian's Prometheus with the shipped configuration, its targets found on this machine."""
    configuration = yaml.safe_load(CONFIGURATION.read_text())
    configuration["global"]["scrape_interval"] = SCRAPE_EVERY
    configuration["rule_files"] = [str(CONFIGURATION.with_name("alerts.yml"))]
    configuration["scrape_configs"] = [
        {
            "job_name": job["job_name"],
            "metrics_path": job["metrics_path"],
            "static_configs": [{"targets": [targets[job["job_name"]]]}],
        }
        for job in configuration["scrape_configs"]
        if job["job_name"] in targets
    ]
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(configuration))
    port = free_port()
    with (folder / "prometheus.log").open("wb") as output:
        process = subprocess.Popen(
            [
                "prometheus", f"--config.file={path}", f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def ask(url: str, query: str) -> list[Any]:
    try:
        answer = httpx.get(f"{url}/api/v1/query", params={"query": query})
    except httpx.HTTPError:
        return []
    return answer.json()["data"]["result"] if answer.is_success else []


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's package prometheus is not installed")
def test_prometheus_scrapes_and_the_dashboard_has_data(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    migrate(database_url)
    port = free_port()
    environment = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
    with (
        fleet(database_url, redis_url, tmp_path, {"PARLEY_METRICS_PORT": str(port)}) as crew,
        gateway(environment, tmp_path / "gateway.log") as url,
    ):
        crew.start(application="workers.app")
        targets = {"gateway": url.removeprefix("http://"), "turns": f"127.0.0.1:{port}"}
        with prometheus(targets, tmp_path) as scraper:
            wait_until(
                lambda: len(ask(scraper, "up == 1")) == 2, within_s=30, what="both targets are scraped"
            )
            _talk(url)
            wait_until(
                lambda: ask(scraper, 'parley_turns_total{status="done"}'),
                within_s=30,
                what="Prometheus knows of the turns",
            )
            _talk(url)
            wait_until(
                lambda: ask(scraper, 'rate(parley_turns_total{status="done"}[1m]) > 0'),
                within_s=60,
                what="Prometheus sees the turns",
            )
            refused = {query for query in queries() if not _is_valid(scraper, query)}
            answered = [query for query in queries() if ask(scraper, query)]
    assert refused == set()
    assert len(answered) > len(queries()) / 2, sorted(set(queries()) - set(answered))


def _is_valid(url: str, query: str) -> bool:
    return httpx.get(f"{url}/api/v1/query", params={"query": query}).is_success


def _talk(url: str) -> None:
    with httpx.Client(base_url=url, timeout=60) as http:
        session = http.post("/v1/sessions", json={"domain": "travel"}).raise_for_status().json()["session_id"]
        for text in (
            "search flights from Oslo to Madrid tomorrow",
            "search flights from Oslo on 2020-01-01 to Rome",
        ):
            http.post(
                f"/v1/sessions/{session}/turns", params={"wait": 30}, json={"text": text}
            ).raise_for_status()
