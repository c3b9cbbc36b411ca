"""Plans: from a request to steps, what becomes of them after each one, and whether the goal is met."""

from orchestrator.planning.changes import Change, Outcome
from orchestrator.planning.planner import Decomposed, Planner, Verdict

__all__ = ["Change", "Decomposed", "Outcome", "Planner", "Verdict"]
