"""Tree search over anything that can be expanded and judged; knows nothing of dialogue."""

from orchestrator.plans.search.tree import Budget, Node, Tree
from orchestrator.plans.search.tree_search import Judgement, Outcome, Task, search

__all__ = ["Budget", "Judgement", "Node", "Outcome", "Task", "Tree", "search"]
