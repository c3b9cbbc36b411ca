"""The steps that generate an answer, in order (RS-2).

`module` has the final check of the answer (RS-6). The Agent removes finished flows before these steps (RS-1).
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from orchestrator.res.response import Response
from orchestrator.res.steps.clarify import clarify, suggest
from orchestrator.res.steps.display import display
from orchestrator.res.steps.generate import generate
from orchestrator.res.steps.naturalize import naturalize

Step: TypeAlias = Callable[[Response], Awaitable[None]]

STEPS: tuple[Step, ...] = (display, generate, naturalize, clarify, suggest)
