"""The tree of a search: candidates, how often each was visited and what came of it.

Which node is looked at next is decided here by upper confidence bound; who expands and scores is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

State = TypeVar("State")


@dataclass(slots=True, eq=False)
class Node(Generic[State]):
    """`score`: of this candidate itself, 0 … 1, None until it was evaluated. `total`: the sum of all scores
    at and below it, `visits` how many they are. `faults`: what is wrong with it, the worst first.
    `closed`: nothing below it is left to be looked at.
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
        """This node and all above it, nearest first."""
        node: Node[State] | None = self
        while node is not None:
            yield node
            node = node.parent

    def bound(self, exploration: float) -> float:
        """The upper confidence bound (UCB1); infinite for what was never visited."""
        if self.visits == 0 or self.parent is None:
            return math.inf
        return self.mean + exploration * math.sqrt(math.log(self.parent.visits + 1) / self.visits)


class Tree(Generic[State]):
    """Nodes in the order in which they were made; the first one is the root, which is no candidate."""

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
        """Go down from the root by upper confidence bound to a node that was not expanded; None: all are."""
        node = self.root
        while node.expanded:
            open_children = [child for child in node.children if not child.closed]
            if not open_children:
                return None
            node = max(open_children, key=lambda child: (child.bound(exploration), -child.number))
        return None if node.closed else node

    def propagate(self, node: Node[State], score: float) -> None:
        """Let everything above a node know its score."""
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
        """The candidate with the highest score of its own, the earliest of equals."""
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
        """Count one call; whoever spends has looked at what is left."""
        self.spent += 1
