"""A local server for the OpenAI API, with answers from a script.

It simulates a working or failing model in tests of Parley and of domains::

    script = Script(rules=(Rule(prompt="nlu_think", replies=(Fail(500), Answer(json={...}))),))
    with ScriptedModel(script) as model:
        ...  # set OPENAI_BASE_URL to model.base_url, then inspect model.requests
"""

from parley.testing.scripted_model.script import (
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
from parley.testing.scripted_model.server import ScriptedModel

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
