"""The graph that flows of one trigger form by `depends_on` (IF-9), and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from internal_flows.stages import InternalFlow
from orchestrator.errors import ConfigurationError, Problem


@dataclass(frozen=True, slots=True)
class Graph:
    """`predecessors` by flow name, in an order in which each stands after what it depends on."""

    predecessors: Mapping[str, tuple[str, ...]]

    def successors(self, name: str) -> tuple[str, ...]:
        return tuple(other for other, needed in self.predecessors.items() if name in needed)


def make_graph(predecessors: Mapping[str, tuple[str, ...]], *, place: str = "internal_flows") -> Graph:
    """Check and order. Raises ConfigurationError naming the path of a cycle or an unknown name."""
    problems = _unknown_names(predecessors, place)
    if problems:
        raise ConfigurationError(problems)
    try:
        order = list(TopologicalSorter(predecessors).static_order())
    except CycleError as error:
        path = " → ".join(reversed(error.args[1]))
        raise ConfigurationError([Problem(f"{place}: depends_on", f"is a circle: {path}")]) from error
    return Graph({name: tuple(dict.fromkeys(predecessors[name])) for name in order})


def graphs_by_trigger(flows: Iterable[type[InternalFlow]]) -> dict[str, Graph]:
    """The graph of each trigger. Raises ConfigurationError with the problems of all of them."""
    by_trigger: dict[str, dict[str, tuple[str, ...]]] = {}
    problems: list[Problem] = []
    for flow in flows:
        nodes = by_trigger.setdefault(flow.trigger, {})
        if flow.name in nodes:
            problems.append(Problem(f"internal_flows.{flow.name}", "is defined twice"))
        nodes[flow.name] = flow.depends_on
    graphs: dict[str, Graph] = {}
    for trigger, nodes in by_trigger.items():
        try:
            graphs[trigger] = make_graph(nodes, place=f"internal_flows of {trigger!r}")
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    return graphs


def _unknown_names(predecessors: Mapping[str, tuple[str, ...]], place: str) -> list[Problem]:
    return [
        Problem(f"{place}: {name}.depends_on", f"{name} → {needed}: there is no flow {needed!r} here")
        for name, all_needed in predecessors.items()
        for needed in all_needed
        if needed not in predecessors
    ]
