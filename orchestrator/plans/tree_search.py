"""Language Agent Tree Search (PL-5): select, expand, evaluate and reflect, back-propagate, within a budget of calls.

The candidates are whatever the task's functions make of them; they may ask a model. All children of a node
are made by one call and judged by one call, faults and all, so that few calls see many candidates. Nothing
here knows of dialogue.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

State = TypeVar("State")
CALLS_PER_NODE = 2  # one that expands it, one that judges what came of it


@dataclass(slots=True, eq=False)
class Node(Generic[State]):
    """A candidate plan in the search tree.

    `score`: its own score from 0 to 1, or None if not evaluated yet. `total`, `visits`: sum and number of the scores at
    and below it. `faults`: its faults, the worst first. `closed`: the subtree is fully explored.
    """

    number: int
    state: State
    parent: Node[State] | None = None
    children: list[Node[State]] = field(default_factory=list["Node[State]"])
    score: float | None = None
    visits: int = 0
    total: float = 0.0
    faults: tuple[str, ...] = ()
    expanded: bool = False
    closed: bool = False

    @property
    def mean(self) -> float:
        return self.total / self.visits if self.visits else 0.0

    def path(self) -> Iterator[Node[State]]:
        """Yield the node and its ancestors, nearest first."""
        node: Node[State] | None = self
        while node is not None:
            yield node
            node = node.parent

    def bound(self, exploration: float) -> float:
        """Compute the upper confidence bound (UCB1); infinite for what was never visited."""
        if self.visits == 0 or self.parent is None:
            return math.inf
        return self.mean + exploration * math.sqrt(math.log(self.parent.visits + 1) / self.visits)


class Tree(Generic[State]):
    """Nodes in order of creation; the first one is the root, which is not a candidate."""

    def __init__(self, root: State) -> None:
        self.nodes: list[Node[State]] = [Node(0, root)]

    @property
    def root(self) -> Node[State]:
        return self.nodes[0]

    def add(self, parent: Node[State], state: State) -> Node[State]:
        node = Node(len(self.nodes), state, parent)
        parent.children.append(node)
        self.nodes.append(node)
        return node

    def select(self, exploration: float) -> Node[State] | None:
        """Return the unexpanded node with the highest upper confidence bound, or None if all are expanded."""
        node = self.root
        while node.expanded:
            open_children = [child for child in node.children if not child.closed]
            if not open_children:
                return None
            node = max(open_children, key=lambda child: (child.bound(exploration), -child.number))
        return None if node.closed else node

    def propagate(self, node: Node[State], score: float) -> None:
        """Propagate a node's score to its ancestors."""
        node.score = score
        for above in node.path():
            above.visits += 1
            above.total += score

    def close(self, node: Node[State]) -> None:
        """Never select this node again, nor those above it that have nothing else to offer."""
        node.closed = True
        for above in node.path():
            if above is not node and not all(child.closed for child in above.children):
                return
            above.closed = True

    def best(self) -> Node[State] | None:
        """Return the candidate with the highest own score, the earliest of equals."""
        scored = [node for node in self.nodes[1:] if node.score is not None]
        return max(scored, key=lambda node: (node.score or 0.0, -node.number), default=None)


@dataclass(slots=True)
class Budget:
    limit: int
    spent: int = 0

    @property
    def left(self) -> int:
        return self.limit - self.spent

    def spend(self) -> None:
        """Count one call; callers check the remaining budget first."""
        self.spent += 1


@dataclass(frozen=True, slots=True)
class Judgement:
    """A candidate's score from 0 to 1, and its faults for `expand`, worst first."""

    score: float
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task(Generic[State]):
    """The thing that is searched.

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
class SearchResult(Generic[State]):
    """The result of a search. `best`: None if the calls did not suffice for a single candidate."""

    tree: Tree[State]
    best: Node[State] | None
    budget: Budget

    def record(self, describe: Callable[[State], Any]) -> dict[str, Any]:
        """Return the search as JSON: nodes, scores, visits and the choice. `describe`: converts a state to JSON."""
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
) -> SearchResult[State]:
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
        if await run.explore(node, width if node is tree.root else variants) >= good_enough:
            break
    return SearchResult(tree, tree.best(), budget)


@dataclass(slots=True)
class _Search(Generic[State]):
    task: Task[State]
    tree: Tree[State]
    budget: Budget
    seen: set[Hashable]

    async def explore(self, node: Node[State], width: int) -> float:
        """Expand a node and score its new children. Returns the best score among them."""
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
        """Return at most `width` candidates that were not proposed before."""
        fresh: dict[Hashable, State] = {}
        for state in states:
            key = self.task.key(state)
            if key not in self.seen:
                fresh.setdefault(key, state)
        chosen = dict(list(fresh.items())[:width])
        self.seen.update(chosen)
        return list(chosen.values())

    async def _judge(self, parent: Node[State], states: Sequence[State]) -> float:
        """Score the new children and update their ancestors."""
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
