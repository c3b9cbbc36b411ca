"""The steps by which an answer is made, in order, one file a step (RS-2).

`start` comes before them: it runs after each flow that PEX carries out (RS-1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from orchestrator.res.answer import Response
from orchestrator.res.steps.clarify import clarify
from orchestrator.res.steps.display import display
from orchestrator.res.steps.finish import finish
from orchestrator.res.steps.generate import generate
from orchestrator.res.steps.naturalize import naturalize
from orchestrator.res.steps.suggest import suggest
from orchestrator.res.steps.warn import warn

Step: TypeAlias = Callable[[Response], Awaitable[None]]

STEPS: tuple[Step, ...] = (
    display,
    generate,
    warn,
    naturalize,
    clarify,
    suggest,
    finish,
)
