"""Which Internal flows this process knows: those that come with the system and those of its domain.

A domain keeps its own in `internal_flows.py`, and the configuration of any of them in
`internal_flows.yaml`, which is read anew for every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from internal_flows.catalogue import Catalogue, flows_among
from internal_flows.housekeeping import FLOWS
from internal_flows.stages import InternalFlow
from orchestrator.adapters.domain_code import import_internal_flows
from orchestrator.adapters.domain_folder import domain_folder
from orchestrator.adapters.yaml_source import read_yaml
from orchestrator.bootstrap import Ports
from orchestrator.domain.problems import Problems
from orchestrator.errors import ConfigurationError
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject
from workers.internal_tools import make_tools

SETTINGS_FILE = "internal_flows.yaml"

MakeCatalogue = Callable[[Ports], Catalogue]
"""Makes the flows of a process over its ports. Raises ConfigurationError."""

_log = get_logger(__name__)


def make_catalogue(ports: Ports) -> Catalogue:
    """The flows of this process, with the tools that they may declare. Raises ConfigurationError."""
    folder = domain_folder(ports.settings.domain)
    settings = FlowSettings(folder)
    tools = make_tools(ports)
    catalogue = Catalogue([*FLOWS, *own_flows(folder)], tools=tools, configure=settings.of_flow)
    tools["triggers"].bind(catalogue)
    return catalogue


def own_flows(folder: Path | None) -> list[type[InternalFlow]]:
    """The flows that a domain folder defines. Raises ConfigurationError."""
    if folder is None:
        return []
    problems = Problems()
    found = import_internal_flows(folder, problems)
    if problems.found:
        raise ConfigurationError(problems.found)
    return flows_among(found)


class FlowSettings:
    """`internal_flows.yaml` of a domain folder: ``flows: {name: {…}}`` and ``schedule: {job: {…}}``."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / SETTINGS_FILE
        self._kept: JsonObject = {}

    def of_flow(self, name: str) -> JsonObject:
        """What the file says of a flow now; as it was when it can no longer be read."""
        return _section(_section(self.read(), "flows"), name)

    def read(self) -> JsonObject:
        """The whole file; empty when there is none."""
        if self._path is None or not self._path.exists():
            return {}
        problems = Problems()
        body = read_yaml(self._path, SETTINGS_FILE, problems).body
        if problems.found or not isinstance(body, dict):
            _log.error(
                "The settings of Internal flows cannot be read.", problems=[str(p) for p in problems.found]
            )
        else:
            self._kept = body
        return self._kept


def _section(body: Mapping[str, Any], name: str) -> JsonObject:
    section = body.get(name)
    return section if isinstance(section, dict) else {}
