"""Turns what the tools returned into something to show: a frame for the domain's own families (PX-12)."""

from __future__ import annotations

import orjson

from orchestrator.dialogue.specification import Family
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, Failed
from orchestrator.pex.frames import repair
from orchestrator.pex.skills.components import write_note

FRAMED = frozenset({Family.READ, Family.PREPARE, Family.TRANSFORM, Family.SCHEDULE})


async def results(policy: Choices, run: Execution) -> Ending | None:
    """Keep the findings for the answer and, where the family has one, make the flow's frame.

    Other families leave what they found in the scratchpad.
    """
    run.context.changes.findings[run.flow.flow_id] = run.data
    if run.flow.spec.family in FRAMED:
        return await _frame(run, policy) if run.has_result else None
    if run.data:
        await write_note(run, orjson.dumps(run.data, default=str).decode())
        run.noted = True
    return None


async def _frame(run: Execution, policy: Choices) -> Failed | None:
    frame = run.frame = run.context.changes.frames[run.flow.flow_id] = policy.frame(run)
    if run.warning is not None:
        frame.warning = run.warning
    if frame.code is None:
        frame.code = run.code
    return await repair(run, policy.writer)
