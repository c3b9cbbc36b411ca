"""Plans: from a request to steps, what becomes of them after each one, and whether the goal is met."""

from orchestrator.plans.changes import Change, Outcome
from orchestrator.plans.planner import Decomposed, Planner, Verdict

__all__ = ["Change", "Decomposed", "Outcome", "Planner", "Verdict"]
