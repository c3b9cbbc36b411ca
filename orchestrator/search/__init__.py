"""Tree search over anything that can be expanded, scored and reflected on; knows nothing of dialogue."""

from orchestrator.search.budget import Budget, CallsSpent
from orchestrator.search.tree import Node, Tree
from orchestrator.search.tree_search import Outcome, Task, search

__all__ = ["Budget", "CallsSpent", "Node", "Outcome", "Task", "Tree", "search"]
