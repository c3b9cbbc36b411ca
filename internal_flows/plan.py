"""What of a graph may run when: counts open predecessors, releases and blocks. Holds no time and no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from internal_flows.graph import Graph
from orchestrator.ports.runs.status import SUCCEEDED, OnFailure, RunStatus


@dataclass(frozen=True, slots=True)
class Released:
    """Nodes that may start now, and nodes that never will, each with the reason."""

    ready: tuple[str, ...]
    blocked: tuple[tuple[str, str], ...] = ()


class Plan:
    """The progress of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._open = {name: len(needed) for name, needed in graph.predecessors.items()}
        self._blocked: set[str] = set()

    def begin(self) -> tuple[str, ...]:
        """The nodes without predecessors."""
        return tuple(name for name, count in self._open.items() if count == 0)

    def end(self, name: str, status: RunStatus, on_failure: OnFailure) -> Released:
        """A node has ended; what follows from that."""
        if status not in SUCCEEDED and on_failure is OnFailure.BLOCK:
            return Released((), tuple(self._block(name, status)))
        ready: list[str] = []
        for follower in self._graph.successors(name):
            self._open[follower] -= 1
            if self._open[follower] == 0 and follower not in self._blocked:
                ready.append(follower)
        return Released(tuple(ready))

    def _block(self, name: str, status: RunStatus) -> list[tuple[str, str]]:
        """Everything that depends on a node, directly or through others."""
        blocked: list[tuple[str, str]] = []
        causes = [(follower, block_reason(name, status)) for follower in self._graph.successors(name)]
        while causes:
            follower, reason = causes.pop(0)
            if follower in self._blocked:
                continue
            self._blocked.add(follower)
            blocked.append((follower, reason))
            causes += [
                (further, block_reason(follower, RunStatus.BLOCKED))
                for further in self._graph.successors(follower)
            ]
        return blocked


def block_reason(name: str, status: RunStatus) -> str:
    """Why a successor was left unrun."""
    return f"{name} is {status}"
