"""The background flows of this process: Parley's and those of the served domains.

A domain defines flows in `internal_flows.py` and configures any flow in `internal_flows.yaml`, which is
re-read for every run.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from internal_flows.builtin import FLOWS
from internal_flows.catalogue import Catalogue, flows_among, sort_out
from internal_flows.schedule import read_jobs
from internal_flows.stages import InternalFlow
from orchestrator.adapters.domains.code import import_internal_flows
from orchestrator.adapters.domains.folder import served_folders
from orchestrator.adapters.domains.yaml_source import read_yaml
from orchestrator.bootstrap import Ports
from orchestrator.domain.compile.problems import Problems
from orchestrator.errors import ConfigurationError, Problem
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject
from workers.internal.tools import TOOLS, make_tools

SETTINGS_FILE = "internal_flows.yaml"

MakeCatalogue = Callable[[Ports], Catalogue]
"""A function that creates a process's catalog of flows, or raises ConfigurationError."""

_log = get_logger(__name__)


def make_catalogue(ports: Ports) -> Catalogue:
    """Create the catalog of this process's flows and tools. Invalid flows are logged and disabled."""
    folders = served_folders(ports.settings.domain)
    own: list[type[InternalFlow]] = []
    unread: dict[str, list[Problem]] = {}
    for folder in folders:
        try:
            own += own_flows(folder)
        except ConfigurationError as error:
            unread[f"all flows of {folder.name}"] = error.problems
    tools = make_tools(ports)
    catalogue = Catalogue([*FLOWS, *own], tools=tools, configure=FlowSettings(folders).of_flow)
    catalogue.off |= unread
    for name, problems in catalogue.off.items():
        _log.error("A background flow is disabled.", flow=name, why="; ".join(map(str, problems)))
    tools["triggers"].bind(catalogue)
    return catalogue


def check_internal_flows(folder: Path) -> list[Problem]:
    """Return all problems with a domain folder's background flows and schedule.

    Workers disable flows with problems and run the others.
    """
    try:
        own = own_flows(folder)
    except ConfigurationError as error:
        return error.problems
    usable, off = sort_out([*FLOWS, *own], TOOLS)
    schedule = read_jobs(FlowSettings([folder]).schedule())
    triggers = {flow.trigger for flow in usable}
    idle = [
        Problem(f"internal_flows.yaml: schedule.{job.name}", f"no flow has the trigger {job.trigger!r}")
        for job in schedule.jobs
        if job.trigger not in triggers
    ]
    return [*(problem for problems in off.values() for problem in problems), *schedule.off, *idle]


def own_flows(folder: Path) -> list[type[InternalFlow]]:
    """Return the flow classes that a domain folder defines. Raises ConfigurationError."""
    problems = Problems()
    found = import_internal_flows(folder, problems)
    if problems.found:
        raise ConfigurationError(problems.found)
    return flows_among(found)


class FlowSettings:
    """The settings from the domain folders' `internal_flows.yaml`. Later folders take precedence.

    Format: ``flows: {name: {…}}``, ``schedule: {job: {…}}``.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._kept: dict[Path, JsonObject] = {folder / SETTINGS_FILE: {} for folder in folders}

    def of_flow(self, name: str) -> JsonObject:
        """Return a flow's current settings. While a file is invalid, its last valid settings apply."""
        return _section(self._read("flows"), name)

    def schedule(self) -> JsonObject:
        """Return the settings of scheduled jobs, by job name."""
        return self._read("schedule")

    def _read(self, part: str) -> JsonObject:
        found: JsonObject = {}
        for path in self._kept:
            found |= _section(self._read_file(path), part)
        return found

    def _read_file(self, path: Path) -> JsonObject:
        if not path.exists():
            return {}
        problems = Problems()
        body = read_yaml(path, SETTINGS_FILE, problems).body
        if problems.found or not isinstance(body, dict):
            _log.error("Could not read internal_flows.yaml.", problems=[str(p) for p in problems.found])
        else:
            self._kept[path] = body
        return self._kept[path]


def _section(body: Mapping[str, Any], name: str) -> JsonObject:
    section = body.get(name)
    return section if isinstance(section, dict) else {}
