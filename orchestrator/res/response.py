from typing import NamedTuple

from orchestrator.context import Answer, TurnContext
from orchestrator.models.engineer import PromptEngineer
from orchestrator.res.templates import Templates


class Response(NamedTuple):
    """An answer in progress, which the RES steps share. `writer`: rephrases answers with a model, or None."""

    context: TurnContext
    answer: Answer
    templates: Templates
    writer: PromptEngineer | None = None
