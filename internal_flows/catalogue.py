"""The flows that a process knows, their graphs and configuration. Checked once, at start-up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from internal_flows.graph import Graph, graphs_by_trigger
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.errors import ConfigurationError, NotFound, Problem
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.work import RunFacts
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject, SessionId, TenantId

Configure = Callable[[str], JsonObject]
"""The present configuration of a flow; asked anew for every run."""


def no_configuration(_: str) -> JsonObject:
    return {}


class Catalogue:
    """Flows by name.

    Args:
        tools: the ports that flows may declare, by name; None where flows are started and not carried out.

    Raises:
        ConfigurationError: graphs that cannot be, names used twice, tools that do not exist.
    """

    def __init__(
        self,
        flows: Iterable[type[InternalFlow]],
        *,
        tools: Mapping[str, Any] | None = None,
        configure: Configure = no_configuration,
    ) -> None:
        known = list(flows)
        self._tools = dict(tools or {})
        problems = [problem for flow in known for problem in _problems(flow, tools)]
        if problems:
            raise ConfigurationError(problems)
        self.graphs: dict[str, Graph] = graphs_by_trigger(known)
        self.flows = {flow.name: flow for flow in known}
        self.configure = configure

    def flow(self, name: str) -> type[InternalFlow]:
        """Raises NotFound."""
        found = self.flows.get(name)
        if found is None:
            raise NotFound("Internal flow", name)
        return found

    def new_run(
        self,
        name: str,
        *,
        inputs: tuple[Json, ...] = (),
        options: JsonObject | None = None,
        parameters: JsonObject | None = None,
        tenant_id: TenantId = DEFAULT_TENANT,
        session_id: SessionId | None = None,
        flight: str | None = None,
        depends_on: tuple[str, ...] = (),
    ) -> NewRun:
        """A node to be started. `flight` names what only one run of this flow may be at work on.

        Raises:
            NotFound: no such flow.
            ConfigurationError: options that do not fit.
        """
        flow = self.flow(name)
        try:
            flow.options.with_overrides(options or {})
        except ValueError as error:
            raise ConfigurationError([Problem(f"options of {name}", str(error))]) from error
        return NewRun(
            flow=name,
            inputs=inputs,
            options=options or {},
            parameters=parameters or {},
            depends_on=depends_on,
            tenant_id=tenant_id,
            session_id=session_id,
            flight_key=None if flight is None else f"{flight}:{name}",
            on_failure=flow.on_failure,
            urgency=flow.urgency,
        )

    def new_graph(
        self,
        trigger: str,
        *,
        parameters: JsonObject | None = None,
        tenant_id: TenantId = DEFAULT_TENANT,
        session_id: SessionId | None = None,
        flight: str | None = None,
    ) -> tuple[NewRun, ...]:
        """All nodes of a trigger, in order. Raises NotFound."""
        graph = self.graphs.get(trigger)
        if graph is None:
            raise NotFound("trigger of Internal flows", trigger)
        return tuple(
            self.new_run(
                name,
                parameters=parameters,
                tenant_id=tenant_id,
                session_id=session_id,
                flight=flight,
                depends_on=needed,
            )
            for name, needed in graph.predecessors.items()
        )

    def context(self, facts: RunFacts) -> RunContext:
        """Make the context of a run's stages, with the tools that the flow declared only."""
        flow = self.flow(facts.flow)
        configured = facts.config.get("options", {})
        return RunContext(
            run_id=facts.run_id,
            flow=facts.flow,
            tenant_id=facts.tenant_id,
            session_id=facts.session_id,
            redo_count=facts.redo_count,
            parameters=facts.parameters,
            config=facts.config,
            options=flow.options.with_overrides(configured).with_overrides(facts.options),
            data=facts.data,
            tools={name: self._tools[name] for name in flow.tools},
        )


def flows_among(names: Mapping[str, Any]) -> list[type[InternalFlow]]:
    """The flows that a file defines; a class without a name is only a base of others."""
    return [
        value
        for value in names.values()
        if isinstance(value, type) and issubclass(value, InternalFlow) and value.name
    ]


def _problems(flow: type[InternalFlow], tools: Mapping[str, Any] | None) -> list[Problem]:
    place = f"internal_flows.{flow.name or flow.__name__}"
    problems: list[Problem] = []
    if not flow.name:
        problems.append(Problem(place, "has no name"))
    if not flow.trigger:
        problems.append(Problem(place, "has no trigger"))
    try:
        TypeAdapter(flow.input_type)
    except PydanticUserError as error:
        problems.append(Problem(f"{place}.input_type", error.message))
    for tool in flow.tools:
        if tools is not None and tool not in tools:
            there = ", ".join(sorted(tools)) or "none"
            problems.append(Problem(f"{place}.tools", f"there is no tool {tool!r}; there are {there}"))
    return problems
