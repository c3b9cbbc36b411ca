"""The one interface to models (CO-2): prompts, and the way from a prompt to a usable answer."""

from orchestrator.prompting.breaker import BreakerBoard, BreakerPolicy, CircuitState, CircuitView
from orchestrator.prompting.budget import BudgetLimits, InProcessSpending, Limit, Price, Spending
from orchestrator.prompting.calling import CallContext, Pacing
from orchestrator.prompting.config import DEFAULT_PROVIDER, ModelChoice, ModelConfig
from orchestrator.prompting.data import encode_data
from orchestrator.prompting.engineer import PromptEngineer, circuit_signal, tool_result
from orchestrator.prompting.from_domain import read_model_config, read_voters
from orchestrator.prompting.journal import CallJournal
from orchestrator.prompting.retry import RetryPolicy
from orchestrator.prompting.structured import ToolRequest, ToolsAnswer
from orchestrator.prompting.templates import Prompt, PromptRegistry, PromptVariablesWrong, load_prompts
from orchestrator.prompting.voter import Voter

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
