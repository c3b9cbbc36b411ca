"""Language Agent Tree Search (PL-5): select, reflect, expand, evaluate, back-propagate, within a budget of calls.

The candidates are whatever the task's functions make of them; they may ask a model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from orchestrator.search.budget import Budget, CallsSpent
from orchestrator.search.tree import Node, Tree

State = TypeVar("State")


@dataclass(frozen=True)
class Task(Generic[State]):
    """What is searched.

    `expand(state, lessons, width)`: at most `width` candidates that follow from a state; from the
    root's state the first ones. `lessons`: what was learnt on the way to it, the root's first.
    `evaluate(state)`: how good a candidate is, 0 … 1. `reflect(state, score)`: what is wrong with
    it, in words for `expand`; None: no reflection. `key(state)`: equal candidates have equal keys.
    """

    root: State
    expand: Callable[[State, Sequence[str], int], Awaitable[Sequence[State]]]
    evaluate: Callable[[State], Awaitable[float]]
    key: Callable[[State], Hashable]
    reflect: Callable[[State, float], Awaitable[str]] | None = None


@dataclass(frozen=True)
class Outcome(Generic[State]):
    """`best`: None when the calls did not suffice for one candidate."""

    tree: Tree[State]
    best: Node[State] | None
    budget: Budget

    def record(self, describe: Callable[[State], Any]) -> dict[str, Any]:
        """The whole search as JSON: nodes, scores, visits and the choice. `describe`: a state as JSON."""
        return {
            "calls": self.budget.spent,
            "limit": self.budget.limit,
            "chosen": None if self.best is None else self.best.number,
            "nodes": [
                {
                    "node": node.number,
                    "parent": None if node.parent is None else node.parent.number,
                    "state": describe(node.state),
                    "score": node.score,
                    "visits": node.visits,
                    "mean": round(node.mean, 6),
                    "lesson": node.lesson,
                }
                for node in self.tree.nodes
            ],
        }


async def search(
    task: Task[State],
    *,
    calls: int,
    width: int = 3,
    exploration: float = 0.2,
    good_enough: float = 1.0,
) -> Outcome[State]:
    """Find the best candidate.

    Args:
        task: what to search.
        calls: how many calls of the task's functions may be made altogether.
        width: candidates per expansion.
        exploration: weight of what was seldom visited against what scored well.
        good_enough: a candidate with this score ends the search.
    """
    tree, budget = Tree(task.root), Budget(calls)
    run = _Search(task, tree, budget, width, {task.key(task.root)})
    try:
        while (node := tree.select(exploration)) is not None:
            if await run.look_below(node) >= good_enough:
                break
    except CallsSpent:
        pass
    return Outcome(tree, tree.best(), budget)


@dataclass(slots=True)
class _Search(Generic[State]):
    task: Task[State]
    tree: Tree[State]
    budget: Budget
    width: int
    seen: set[Hashable]

    async def look_below(self, node: Node[State]) -> float:
        """Reflect on a node, expand it, score its new children. Returns the best score among them."""
        await self._reflect(node)
        self.budget.spend()
        lessons = [above.lesson for above in node.path() if above.lesson][::-1]
        states = await self.task.expand(node.state, lessons, self.width)
        node.expanded = True
        best = 0.0
        for state in self._new(states):
            child = self.tree.add(node, state)
            best = max(best, await self._evaluate(child))
        if all(child.closed for child in node.children):
            self.tree.close(node)
        return best

    async def _reflect(self, node: Node[State]) -> None:
        if self.task.reflect is None or node.score is None or node.score >= 1.0:
            return
        self.budget.spend()
        node.lesson = await self.task.reflect(node.state, node.score)

    def _new(self, states: Sequence[State]) -> list[State]:
        """Candidates that nobody proposed before, at most as many as wanted."""
        fresh: dict[Hashable, State] = {}
        for state in states:
            key = self.task.key(state)
            if key not in self.seen:
                fresh.setdefault(key, state)
        chosen = dict(list(fresh.items())[: self.width])
        self.seen.update(chosen)
        return list(chosen.values())

    async def _evaluate(self, child: Node[State]) -> float:
        self.budget.spend()
        score = min(1.0, max(0.0, await self.task.evaluate(child.state)))
        self.tree.propagate(child, score)
        return score
