"""Language Agent Tree Search (PL-5): select, expand, evaluate with reflection, and backpropagate.

The task's functions, which may call a model, create and judge candidates. One call creates all children of a node,
and another call judges them, so that few calls cover many candidates.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

State = TypeVar("State")
CALLS_PER_NODE = 2  # one call expands the node, another judges its children
EXPLORATION = 0.05
"""Weight of rarely visited nodes against nodes with high scores."""


@dataclass(slots=True, eq=False)
class Node(Generic[State]):
    """A candidate in the search tree.

    Attributes:
        score: the candidate's score from 0 to 1, or None for the root.
        visits: number of scores in the subtree.
        total: sum of the scores in the subtree.
        faults: the candidate's faults, worst first.
        closed: True if the subtree is fully explored.
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
        node: Node[State] | None = self
        while node is not None:
            yield node
            node = node.parent

    def bound(self, exploration: float) -> float:
        """Return the upper confidence bound (UCB1), which is infinite for the root and unvisited nodes."""
        if self.visits == 0 or self.parent is None:
            return math.inf
        return self.mean + exploration * math.sqrt(math.log(self.parent.visits + 1) / self.visits)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A candidate's score from 0 to 1, and its faults, worst first, which `expand` receives as lessons."""

    score: float
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task(Generic[State]):
    """A search problem.

    Attributes:
        root: the state that the first candidates are created from.
        expand: creates up to `width` candidates from a state and its lessons, which are the faults of the
            state and its ancestors, nearest first.
        judge: returns a judgment per candidate.
        key: returns equal keys for equal candidates.
    """

    root: State
    expand: Callable[[State, Sequence[Sequence[str]], int], Awaitable[Sequence[State]]]
    judge: Callable[[Sequence[State]], Awaitable[Sequence[Judgement]]]
    key: Callable[[State], Hashable]


async def search(task: Task[State], *, calls: int, width: int = 3, variants: int = 4) -> Search[State]:
    """Search until a candidate scores 1, the call limit is reached or all nodes are explored. Return the search.

    Args:
        task: the search problem.
        calls: maximum number of calls to the task's functions.
        width: maximum number of candidates from the root.
        variants: maximum number of candidates from each other node.
    """
    run = Search(task, calls)
    while run.limit - run.spent >= CALLS_PER_NODE and (node := run.select(EXPLORATION)) is not None:
        if await run.explore(node, width if node is run.nodes[0] else variants) >= 1.0:
            break
    return run


class Search(Generic[State]):
    """A search and its tree. `nodes`: the root, which is not a candidate, then all candidates in creation order."""

    def __init__(self, task: Task[State], limit: int) -> None:
        self.nodes: list[Node[State]] = [Node(0, task.root)]
        self.limit, self.spent = limit, 0
        self._task = task
        self._seen = {task.key(task.root)}

    @property
    def best(self) -> Node[State] | None:
        """Return the candidate with the highest score, or None. Of equal candidates, return the earliest."""
        scored = [node for node in self.nodes[1:] if node.score is not None]
        return max(scored, key=lambda node: (node.score or 0.0, -node.number), default=None)

    def select(self, exploration: float) -> Node[State] | None:
        """Return the unexpanded node that the highest upper confidence bounds lead to, or None if none is left."""
        node = self.nodes[0]
        while node.expanded:
            open_children = [child for child in node.children if not child.closed]
            if not open_children:
                return None
            node = max(open_children, key=lambda child: (child.bound(exploration), -child.number))
        return None if node.closed else node

    async def explore(self, node: Node[State], width: int) -> float:
        """Expand a node and score its new children. Return their best score, or 0 if there are none."""
        self.spent += 1
        lessons = [above.faults for above in node.path() if above.faults]
        states = await self._task.expand(node.state, lessons, width)
        node.expanded = True
        fresh = self._choose_new(states, width)
        best = await self._judge(node, fresh) if fresh else 0.0
        for above in node.path():  # a node is closed when all its children are closed
            if not all(child.closed for child in above.children):
                break
            above.closed = True
        return best

    def _choose_new(self, states: Sequence[State], width: int) -> list[State]:
        """Return at most `width` candidates that were not proposed before."""
        fresh: dict[Hashable, State] = {}
        for state in states:
            key = self._task.key(state)
            if key not in self._seen:
                fresh.setdefault(key, state)
        chosen = dict(list(fresh.items())[:width])
        self._seen.update(chosen)
        return list(chosen.values())

    async def _judge(self, parent: Node[State], states: Sequence[State]) -> float:
        """Score the new children and update their ancestors. Return the best score."""
        self.spent += 1
        judgements = await self._task.judge(states)
        scores = [min(1.0, max(0.0, judgement.score)) for judgement in judgements]
        for state, score, judgement in zip(states, scores, judgements, strict=True):
            self.add(parent, state, score, judgement.faults)
        return max(scores)

    def add(
        self, parent: Node[State], state: State, score: float, faults: tuple[str, ...] = ()
    ) -> Node[State]:
        node = Node(len(self.nodes), state, parent, score=score, faults=faults)
        parent.children.append(node)
        self.nodes.append(node)
        for above in node.path():
            above.visits += 1
            above.total += score
        return node

    def record(self, describe: Callable[[State], Any]) -> dict[str, Any]:
        """Return the search as JSON: nodes, scores, visits and the choice. `describe`: converts a state to JSON."""
        best = self.best
        return {
            "calls": self.spent,
            "limit": self.limit,
            "chosen": None if best is None else best.number,
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
                for node in self.nodes
            ],
        }
