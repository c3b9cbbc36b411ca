"""PEX, the policy executor. What domains build on is named here."""

from orchestrator.pex.arguments import Arguments, Choice, NothingFound, Unfed
from orchestrator.pex.execution import (
    Completed,
    Ending,
    Execution,
    Failed,
    NeedsInput,
    Parked,
    Recover,
    Recovery,
)
from orchestrator.pex.policy import BasePolicy
from orchestrator.tools.toolbox import Tool

__all__ = [
    "Arguments",
    "BasePolicy",
    "Choice",
    "Completed",
    "Ending",
    "Execution",
    "Failed",
    "NeedsInput",
    "NothingFound",
    "Parked",
    "Recover",
    "Recovery",
    "Tool",
    "Unfed",
]
