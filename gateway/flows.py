"""Background flows that HTTP clients can start. Workers run these flows."""

from functools import cached_property

from internal_flows.builtin import FLOWS
from internal_flows.catalogue import Catalogue, flows_among
from orchestrator.adapters.domains.code import import_internal_flows
from orchestrator.adapters.domains.folder import served_folders
from orchestrator.domain.compile.problems import Problems


class KnownFlows:
    """The background flows of Parley and of the served domains, loaded on first use.

    Args:
        domain: value of PARLEY_DOMAIN, which selects the served domains.
        catalogue: the flows, or None to load them.
    """

    def __init__(self, domain: str, catalogue: Catalogue | None = None) -> None:
        self._domain = domain
        self._given = catalogue

    @cached_property
    def catalogue(self) -> Catalogue:
        """The flows, except those in invalid files. Workers report the problems with these files."""
        if self._given is not None:
            return self._given
        own = [import_internal_flows(folder, Problems()) for folder in served_folders(self._domain)]
        return Catalogue([*FLOWS, *(flow for names in own for flow in flows_among(names))])
