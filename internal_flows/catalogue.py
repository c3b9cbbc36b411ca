"""A catalog of background flows, with their dependency graphs (IF-9), configuration and tools."""

from collections.abc import Callable, Collection, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from internal_flows.stages import InternalFlow, RunContext
from orchestrator.errors import ConfigurationError, NotFound, Problem
from orchestrator.ports.material import MATERIALS
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.work import RunFacts
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject, SessionId, TenantId

Predecessors: TypeAlias = Mapping[str, tuple[str, ...]]


def in_order(predecessors: Predecessors) -> Predecessors:
    """Return the graph in topological order."""
    return {
        name: tuple(dict.fromkeys(predecessors[name]))
        for name in TopologicalSorter(predecessors).static_order()
    }


def _find_offenders(predecessors: Predecessors, place: str) -> list[tuple[str, Problem]]:
    """Return the names of the flows that make a graph invalid, with their problems.

    `place`: start of each problem's location.
    """
    unknown = [
        (name, Problem(f"{place}: {name}.depends_on", f"unknown flow {needed!r}"))
        for name, all_needed in predecessors.items()
        for needed in all_needed
        if needed not in predecessors
    ]
    if unknown:
        return unknown
    try:
        TopologicalSorter(predecessors).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        problem = Problem(f"{place}: depends_on", f"forms a cycle: {' → '.join(reversed(circle))}")
        return [(name, problem) for name in circle]
    return []


def sort_out(
    flows: Iterable[type[InternalFlow]], tools: Collection[str] | None
) -> tuple[list[type[InternalFlow]], dict[str, list[Problem]]]:
    """Return the valid flows, and the problems with the invalid ones, by flow name (IF-15).

    Flows that depend on an invalid flow, and further definitions of the same name, are also invalid. `tools`:
    names of the available tools, or None to accept any tool.
    """
    off: dict[str, list[Problem]] = {}
    good: dict[str, type[InternalFlow]] = {}
    for flow in flows:
        problems = _problems(flow, tools)
        if flow.name in good:
            problems.append(
                Problem(f"internal_flows.{flow.name}", "is defined twice; the first definition is used")
            )
        if problems:
            off.setdefault(flow.name or flow.__name__, []).extend(problems)
        else:
            good[flow.name] = flow
    while offenders := [
        offender
        for trigger in {flow.trigger for flow in good.values()}
        for offender in _find_offenders(
            {flow.name: flow.depends_on for flow in good.values() if flow.trigger == trigger},
            f"internal_flows with the trigger {trigger!r}",
        )
    ]:
        for name, problem in offenders:
            good.pop(name, None)
            if problem not in off.setdefault(name, []):
                off[name].append(problem)
    return list(good.values()), off


Configure = Callable[[str], JsonObject]
"""A function that returns a flow's current configuration. It is called for every run."""


def no_configuration(_: str) -> JsonObject:
    return {}


class Catalogue:
    """The background flows of a process.

    Args:
        tools: the tools that flows can declare, by name, or None if this process only starts flows.

    `off`: problems that disable flows, by flow name.
    """

    def __init__(
        self,
        flows: Iterable[type[InternalFlow]],
        *,
        tools: Mapping[str, Any] | None = None,
        configure: Configure = no_configuration,
    ) -> None:
        known, self.off = sort_out(flows, tools)
        self._tools = dict(tools or {})
        self.graphs = {
            trigger: in_order({flow.name: flow.depends_on for flow in known if flow.trigger == trigger})
            for trigger in {flow.trigger for flow in known}
        }
        self.flows = {flow.name: flow for flow in known}
        self.configure = configure

    def flow(self, name: str) -> type[InternalFlow]:
        """Return a flow. Raises NotFound, or ConfigurationError if the flow is disabled."""
        found = self.flows.get(name)
        if found is None and name in self.off:
            raise ConfigurationError(self.off[name])
        if found is None:
            raise NotFound("background flow", name)
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
        """Return a run to start. `flight`: a key that limits this flow to one run at a time.

        Raises:
            NotFound: the flow doesn't exist.
            ConfigurationError: the flow is disabled, or the options are invalid.
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
        """Return the runs of a trigger's flows, in topological order. Raises NotFound if the trigger has no flows.

        `flight`: a key that limits each flow to one run at a time.
        """
        graph = self.graphs.get(trigger)
        if graph is None:
            raise NotFound("trigger", trigger)
        return tuple(
            self.new_run(
                name,
                parameters=parameters,
                tenant_id=tenant_id,
                session_id=session_id,
                flight=flight,
                depends_on=needed,
            )
            for name, needed in graph.items()
        )

    def context(self, facts: RunFacts) -> RunContext:
        """Create the context for a run's stages, with only the tools that the flow declares.

        Raises NotFound, ConfigurationError, or ValueError if the options are invalid.
        """
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
            material=dict.fromkeys(flow.material),
        )


def flows_among(names: Mapping[str, Any]) -> list[type[InternalFlow]]:
    """Return the flows among a module's names. Classes without a name are base classes and are skipped."""
    return [
        value
        for value in names.values()
        if isinstance(value, type) and issubclass(value, InternalFlow) and value.name
    ]


def _problems(flow: type[InternalFlow], tools: Collection[str] | None) -> list[Problem]:
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
    for unknown in sorted(set(flow.material) - MATERIALS):
        there = ", ".join(sorted(MATERIALS))
        problems.append(Problem(f"{place}.material", f"unknown material {unknown!r}; available: {there}"))
    for tool in flow.tools:
        if tools is not None and tool not in tools:
            there = ", ".join(sorted(tools)) or "none"
            problems.append(Problem(f"{place}.tools", f"unknown tool {tool!r}; available: {there}"))
    return problems
