"""A local endpoint that speaks the OpenAI API and answers from a script.

It stands in for a model, healthy or failing, in the tests of Parley and of users' domains::

    script = Script(rules=(Rule(prompt="nlu_think", replies=(Fail(500), Answer(json={...}))),))
    with ScriptedModel(script) as model:
        ...  # point OPENAI_BASE_URL at model.base_url, then look at model.requests
"""

from orchestrator.testing.scripted_model.script import (
    Answer,
    Computed,
    Drop,
    Fail,
    Hang,
    Raw,
    Reply,
    Request,
    Rule,
    Script,
    ToolUse,
    load_script,
    parse_script,
)
from orchestrator.testing.scripted_model.server import ScriptedModel

__all__ = [
    "Answer",
    "Computed",
    "Drop",
    "Fail",
    "Hang",
    "Raw",
    "Reply",
    "Request",
    "Rule",
    "Script",
    "ScriptedModel",
    "ToolUse",
    "load_script",
    "parse_script",
]
