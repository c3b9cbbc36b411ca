"""Keeps the candidate of a flow: the one non-idempotent call it is about to make, as shown to the user (AM-3).

It is bound to the tool, its arguments and the flow's slot values: when any slot changes, a yes
to it no longer counts. It lives in the flow's notes.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

import orjson

from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput
from orchestrator.tools.toolbox import Tool
from orchestrator.types import JsonObject, ToolId

NOTE = "candidate"


@dataclass(slots=True)
class Candidate:
    """`data`: what earlier tools found that is still needed after the yes."""

    tool_id: ToolId
    arguments: JsonObject
    data: JsonObject
    slots: str
    confirmed: bool = False
    again: bool = False
    """A yes means: although nobody knows whether it was done before (RT-9)."""


def fingerprint(flow: BaseFlow) -> str:
    """Digest a flow's slot values."""
    body = orjson.dumps(flow.values(), option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(body, digest_size=8).hexdigest()


def read_candidate(flow: BaseFlow) -> Candidate | None:
    """Read the candidate; None when there is none, or when it no longer matches the flow's slots."""
    body = flow.notes.get(NOTE)
    if body is None:
        return None
    candidate = Candidate(**body)
    if candidate.slots != fingerprint(flow):
        del flow.notes[NOTE]
        return None
    return candidate


def write_candidate(flow: BaseFlow, candidate: Candidate) -> None:
    flow.notes[NOTE] = asdict(candidate)


def confirm_candidate(flow: BaseFlow) -> bool:
    """Take the user's yes; False when there is nothing it could mean."""
    candidate = read_candidate(flow)
    if candidate is None:
        return False
    candidate.confirmed = True
    write_candidate(flow, candidate)
    return True


def drop_candidate(flow: BaseFlow) -> None:
    flow.notes.pop(NOTE, None)


def make_candidate(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, **more: bool
) -> Candidate:
    """Describe the call as it is shown to the user, with what is still needed after the yes."""
    return Candidate(tool.spec.tool_id, arguments, policy.keep(run), fingerprint(run.flow), **more)


def ask_to_confirm(run: Execution, policy: Choices, tool: Tool, arguments: JsonObject) -> NeedsInput:
    """Show what is about to be done and wait for a yes."""
    run.context.changes.findings[run.flow.flow_id] = run.data
    return ask(run, make_candidate(run, policy, tool, arguments), policy, about="candidate")


def ask(run: Execution, candidate: Candidate, policy: Choices, *options: Option, **about: str) -> NeedsInput:
    """Put a candidate to the user. `about`: which question it is, for its wording."""
    write_candidate(run.flow, candidate)
    run.context.changes.state.ambiguity.declare(
        Level.CONFIRMATION,
        flow_id=run.flow.flow_id,
        turn_id=run.context.ids.turn_id,
        options=options,
        metadata={**about, "shown": policy.summary(run, candidate.arguments)},
    )
    return NeedsInput()
