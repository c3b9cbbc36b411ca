"""Tree search over anything that can be expanded and judged; knows nothing of dialogue."""

from orchestrator.search.budget import Budget
from orchestrator.search.tree import Node, Tree
from orchestrator.search.tree_search import Judgement, Outcome, Task, search

__all__ = ["Budget", "Judgement", "Node", "Outcome", "Task", "Tree", "search"]
