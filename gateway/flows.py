"""Background flows that can be started over HTTP: known by name here, run by workers."""

from functools import cached_property

from internal_flows.catalogue import Catalogue, flows_among
from internal_flows.housekeeping import FLOWS
from orchestrator.adapters.domains.code import import_internal_flows
from orchestrator.adapters.domains.folder import served_folders
from orchestrator.domain.compile.problems import Problems


class KnownFlows:
    """Flows of the system and of the domains, loaded on first use.

    Args:
        catalogue: replaces the domains' flows.
    """

    def __init__(self, domain: str, catalogue: Catalogue | None = None) -> None:
        self._domain = domain
        self._given = catalogue

    @cached_property
    def catalogue(self) -> Catalogue:
        """Return the flows; those of invalid files are unknown here, and workers report why."""
        if self._given is not None:
            return self._given
        own = [import_internal_flows(folder, Problems()) for folder in served_folders(self._domain)]
        return Catalogue([*FLOWS, *(flow for names in own for flow in flows_among(names))])
