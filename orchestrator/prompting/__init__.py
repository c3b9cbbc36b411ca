"""The one interface to models (CO-2): prompts, and the way from a prompt to a usable answer."""

from orchestrator.prompting.breaker import BreakerPolicy, CircuitState, CircuitView
from orchestrator.prompting.budget import BudgetLimits, InProcessSpending, Limit, Price, Spending
from orchestrator.prompting.calling import CallContext, Pacing
from orchestrator.prompting.config import DEFAULT_PROVIDER, ModelChoice, ModelConfig
from orchestrator.prompting.data import encode_data
from orchestrator.prompting.engineer import PromptEngineer, tool_result
from orchestrator.prompting.retry import RetryPolicy
from orchestrator.prompting.structured import ToolRequest, ToolsAnswer
from orchestrator.prompting.templates import Prompt, PromptRegistry, PromptVariablesWrong, load_prompts

__all__ = [
    "DEFAULT_PROVIDER",
    "BreakerPolicy",
    "BudgetLimits",
    "CallContext",
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
    "encode_data",
    "load_prompts",
    "tool_result",
]
