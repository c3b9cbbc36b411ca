"""Debian's Prometheus with the shipped configuration, with targets on this machine."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import ROOT

CONFIGURATION = ROOT / "deploy" / "prometheus" / "prometheus.yml"
SCRAPE_EVERY = "500ms"


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus. An answer is a list of series, empty if Prometheus doesn't respond."""

    http: httpx.Client
    process: subprocess.Popen[bytes]
    configuration: Path

    def scrape_every(self, interval: str) -> None:
        """Change the scrape interval, which is also the timeout for answers."""
        configuration = yaml.safe_load(self.configuration.read_text())
        configuration["global"]["scrape_interval"] = interval
        self.configuration.write_text(yaml.safe_dump(configuration))
        self.process.send_signal(signal.SIGHUP)

    def ask(self, query: str) -> list[Any]:
        try:
            answer = self.http.get("/api/v1/query", params={"query": query})
        except httpx.HTTPError:
            return []
        return answer.json()["data"]["result"] if answer.is_success else []

    def refuses(self, query: str) -> bool:
        """Return whether Prometheus rejects a query."""
        return self.http.get("/api/v1/query", params={"query": query}).status_code == 400


@contextmanager
def prometheus(targets: Mapping[str, str], folder: Path) -> Iterator[Prometheus]:
    """Scrape `targets`, addresses by role. Additional targets of a role are named `more …`."""
    configuration = yaml.safe_load(CONFIGURATION.read_text())
    configuration["global"]["scrape_interval"] = SCRAPE_EVERY
    configuration["rule_files"] = [str(CONFIGURATION.with_name("alerts.yml"))]
    for job in configuration["scrape_configs"]:
        del job["dns_sd_configs"]
        addresses = [
            address for role, address in targets.items() if role.removeprefix("more ") == job["job_name"]
        ]
        job["static_configs"] = [{"targets": addresses}]
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
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as http:
            yield Prometheus(http, process, path)
    finally:
        process.terminate()
        process.wait(30)
