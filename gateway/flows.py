"""Which Internal flows may be started over HTTP: known here by name, run by workers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from internal_flows.catalogue import Catalogue, flows_among
from internal_flows.housekeeping import FLOWS
from orchestrator.adapters.domain_code import import_internal_flows
from orchestrator.adapters.domain_folder import served_folders
from orchestrator.domain.compile.problems import Problems
from orchestrator.errors import ConfigurationError, InvalidInput, NotFound
from orchestrator.ports.runs import NewRun
from orchestrator.types import SessionId


class KnownFlows:
    """The flows of the system and of one domain; its file is read when it is first asked for.

    Args:
        catalogue: what is known, instead of a domain's.
    """

    def __init__(self, domain: str, catalogue: Catalogue | None = None) -> None:
        self._domain = domain
        self._given = catalogue

    def new_run(self, name: str, *, session_id: SessionId | None, **details: Any) -> NewRun:
        """A run to be started; on a session only one of a flow is at work at a time (IF-11).

        Args:
            name: of the flow.
            session_id: the session that it works on.
            details: inputs, options, parameters and tenant, as `Catalogue.new_run` takes them.

        Raises:
            InvalidInput: there is no such flow; it names those that there are.
            ConfigurationError: options that do not fit, or a domain whose flows cannot be read.
        """
        try:
            return self._catalogue.new_run(name, session_id=session_id, flight=session_id, **details)
        except NotFound as error:
            known = ", ".join(sorted(self._catalogue.flows))
            raise InvalidInput(
                f"There is no Internal flow {name!r}; known here: {known}.", field="flow"
            ) from error

    @cached_property
    def _catalogue(self) -> Catalogue:
        if self._given is not None:
            return self._given
        problems = Problems()
        own = [import_internal_flows(folder, problems) for folder in served_folders(self._domain)]
        if problems.found:
            raise ConfigurationError(problems.found)
        return Catalogue([*FLOWS, *(flow for names in own for flow in flows_among(names))])
