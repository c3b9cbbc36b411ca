"""The steps by which an answer is made, in order, one file a step (RS-2).

Before them, after each flow that PEX carries out, `clear_stack` takes what is finished off the stack (RS-1); the
last word has the check of the whole (RS-6). Both are in `module`.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from orchestrator.res.response import Response
from orchestrator.res.steps.clarify import clarify
from orchestrator.res.steps.display import display
from orchestrator.res.steps.generate import generate
from orchestrator.res.steps.naturalize import naturalize
from orchestrator.res.steps.suggest import suggest

Step: TypeAlias = Callable[[Response], Awaitable[None]]

STEPS: tuple[Step, ...] = (display, generate, naturalize, clarify, suggest)
