"""Language models behind any OpenAI-compatible endpoint."""

from orchestrator.adapters.openai.chat import Endpoint, OpenAIChat

__all__ = ["Endpoint", "OpenAIChat"]
