"""The one interface to models (CO-2): prompts, and the way from a prompt to a usable answer."""

from orchestrator.models.breaker import BreakerBoard, BreakerPolicy, CircuitState, CircuitView, RetryPolicy
from orchestrator.models.budget import BudgetLimits, InProcessSpending, Limit, Price, Spending
from orchestrator.models.calling import CallContext, Pacing
from orchestrator.models.config import (
    DEFAULT_PROVIDER,
    ModelChoice,
    ModelConfig,
    read_model_config,
    read_voters,
)
from orchestrator.models.engineer import PromptEngineer, circuit_signal, tool_result
from orchestrator.models.journal import CallJournal
from orchestrator.models.structured import ToolRequest, ToolsAnswer
from orchestrator.models.templates import (
    Prompt,
    PromptRegistry,
    PromptVariablesWrong,
    encode_data,
    load_prompts,
)
from orchestrator.models.voter import Voter

__all__ = [
    "DEFAULT_PROVIDER",
    "BreakerBoard",
    "BreakerPolicy",
    "BudgetLimits",
    "CallContext",
    "CallJournal",
    "CircuitState",
    "CircuitView",
    "InProcessSpending",
    "Limit",
    "ModelChoice",
    "ModelConfig",
    "Pacing",
    "Price",
    "Prompt",
    "PromptEngineer",
    "PromptRegistry",
    "PromptVariablesWrong",
    "RetryPolicy",
    "Spending",
    "ToolRequest",
    "ToolsAnswer",
    "Voter",
    "circuit_signal",
    "encode_data",
    "load_prompts",
    "read_model_config",
    "read_voters",
    "tool_result",
]
