"""Find the part of a run graph that Celery's chain, group and chord can express (IF-9).

In the canvas, a run follows another run if that run is its only dependency. A run follows a fork if its
dependencies are exactly the last runs of the fork's branches. All other runs are sent by the last of their
dependencies to end. Successors that run even after a failure are never part of a canvas, because Celery stops
at a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.ports.runs.records import GraphNode
from orchestrator.ports.runs.status import OnFailure


@dataclass(frozen=True, slots=True)
class Fork:
    """Parallel branches. The canvas is a chord if a run follows the fork, and a group otherwise."""

    branches: tuple[Series, ...]


Series: TypeAlias = "tuple[GraphNode | Fork, ...]"
"""Consecutive steps. Forks are never adjacent. If a run follows a fork, each branch of the fork ends with a run."""


def find_series(first: Sequence[str], nodes: Iterable[GraphNode]) -> list[Series]:
    """Return the series that start with the runs `first`.

    `nodes`: the runs `first` and all their direct and indirect successors.
    """
    graph = {node.run_id: node for node in nodes}
    return _grow([graph[run_id] for run_id in first if run_id in graph], graph)


def _grow(first: Iterable[GraphNode], graph: Mapping[str, GraphNode]) -> list[Series]:
    """Extend each run to a series, then join series whose last runs are exactly the dependencies of a run."""
    series: list[Series] = [_extend((node,), graph) for node in first]
    while (joined := _join(series, graph)) is not None:
        series = joined
    return series


def _extend(series: Series, graph: Mapping[str, GraphNode]) -> Series:
    """Append the runs that only depend on the series' last run."""
    last = series[-1]
    assert isinstance(last, GraphNode)
    private = [node for node in _behind(last, graph) if node.open_predecessors == 1]
    if not private:
        return series
    branches = _grow(private, graph)
    return series + branches[0] if len(branches) == 1 else (*series, Fork(tuple(branches)))


def _join(series: list[Series], graph: Mapping[str, GraphNode]) -> list[Series] | None:
    """Join the first set of series whose last runs are exactly a run's dependencies, and append that run.

    Return None if there is no such set.
    """
    ends = {number: one[-1] for number, one in enumerate(series)}
    waiting: dict[str, list[int]] = {}
    for number, last in ends.items():
        if isinstance(last, GraphNode):
            for node in _behind(last, graph):
                waiting.setdefault(node.run_id, []).append(number)
    for run_id, numbers in waiting.items():
        if len(numbers) > 1 and graph[run_id].open_predecessors == len(numbers):
            fork = Fork(tuple(series[number] for number in numbers))
            others = [one for number, one in enumerate(series) if number not in numbers]
            return [*others, _extend((fork, graph[run_id]), graph)]
    return None


def _behind(node: GraphNode, graph: Mapping[str, GraphNode]) -> list[GraphNode]:
    if node.on_failure is OnFailure.RELEASE:
        return []
    return [graph[run_id] for run_id in dict.fromkeys(node.successors) if run_id in graph]
