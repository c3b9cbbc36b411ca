"""The names that `domain check` permits in templates are those that templates receive."""

import inspect
import re

from orchestrator.domain.model import TEMPLATE_VARIABLES
from orchestrator.res.steps.generate import context_of


def test_templates_are_checked_for_the_variables_that_they_get() -> None:
    assert {*inspect.signature(context_of).parameters} == {"context", "flow"}
    source = inspect.getsource(context_of)
    assert set(re.findall(r'^        "(\w+)": ', source, re.MULTILINE)) == TEMPLATE_VARIABLES
