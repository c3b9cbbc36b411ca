"""Language Agent Tree Search (PL-5): select, expand, evaluate and reflect, back-propagate, within a budget of calls.

The candidates are whatever the task's functions make of them; they may ask a model. All children of a node
are made by one call and judged by one call, faults and all, so that few calls see many candidates.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from orchestrator.plans.search.tree import Budget, Node, Tree

State = TypeVar("State")
CALLS_PER_NODE = 2
"""One that expands it, one that judges what came of it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How good a candidate is, 0 … 1, and what is wrong with it, in words for `expand`, the worst first."""

    score: float
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task(Generic[State]):
    """What is searched.

    `expand(state, lessons, width)`: at most `width` candidates that follow from a state; from the
    root's state the first ones. `lessons`: the faults of the state and of those that it was made
    from, its own first. `judge(states)`: a judgement on each of several candidates.
    `key(state)`: equal candidates have equal keys.
    """

    root: State
    expand: Callable[[State, Sequence[Sequence[str]], int], Awaitable[Sequence[State]]]
    judge: Callable[[Sequence[State]], Awaitable[Sequence[Judgement]]]
    key: Callable[[State], Hashable]


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
                    "faults": list(node.faults),
                }
                for node in self.tree.nodes
            ],
        }


async def search(
    task: Task[State],
    *,
    calls: int,
    width: int = 3,
    variants: int = 4,
    exploration: float = 0.05,
    good_enough: float = 1.0,
) -> Outcome[State]:
    """Find the best candidate.

    Args:
        task: what to search.
        calls: how many calls of the task's functions may be made altogether.
        width: candidates at the root.
        variants: candidates that follow from each other one.
        exploration: weight of what was seldom visited against what scored well.
        good_enough: a candidate with this score ends the search.
    """
    tree, budget = Tree(task.root), Budget(calls)
    run = _Search(task, tree, budget, {task.key(task.root)})
    while budget.left >= CALLS_PER_NODE and (node := tree.select(exploration)) is not None:
        if await run.look_below(node, width if node is tree.root else variants) >= good_enough:
            break
    return Outcome(tree, tree.best(), budget)


@dataclass(slots=True)
class _Search(Generic[State]):
    task: Task[State]
    tree: Tree[State]
    budget: Budget
    seen: set[Hashable]

    async def look_below(self, node: Node[State], width: int) -> float:
        """Expand a node and judge its new children. Returns the best score among them."""
        self.budget.spend()
        lessons = [above.faults for above in node.path() if above.faults]
        states = await self.task.expand(node.state, lessons, width)
        node.expanded = True
        fresh = self._new(states, width)
        best = await self._judge(node, fresh) if fresh else 0.0
        if all(child.closed for child in node.children):
            self.tree.close(node)
        return best

    def _new(self, states: Sequence[State], width: int) -> list[State]:
        """Candidates that nobody proposed before, at most as many as wanted."""
        fresh: dict[Hashable, State] = {}
        for state in states:
            key = self.task.key(state)
            if key not in self.seen:
                fresh.setdefault(key, state)
        chosen = dict(list(fresh.items())[:width])
        self.seen.update(chosen)
        return list(chosen.values())

    async def _judge(self, parent: Node[State], states: Sequence[State]) -> float:
        """Score the new children and let those above know."""
        self.budget.spend()
        judgements = await self.task.judge(states)
        best = 0.0
        for state, judgement in zip(states, judgements, strict=True):
            score = min(1.0, max(0.0, judgement.score))
            child = self.tree.add(parent, state)
            child.faults = judgement.faults
            self.tree.propagate(child, score)
            best = max(best, score)
        return best
