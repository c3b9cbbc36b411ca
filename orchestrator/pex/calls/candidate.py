"""The candidate of a flow: the one non-idempotent call it is about to make, as shown to the user.

It is bound to the tool, its arguments and the flow's slot values: when any slot changes, a yes
to it no longer counts. It lives in the flow's notes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import orjson

from orchestrator.dialogue.flow import BaseFlow
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
    """A short digest of a flow's slot values."""
    body = orjson.dumps(flow.values(), option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(body, digest_size=8).hexdigest()


def read_candidate(flow: BaseFlow) -> Candidate | None:
    """The candidate that still matches the flow's slots, if there is one."""
    body = flow.notes.get(NOTE)
    if body is None:
        return None
    candidate = Candidate(**body)
    if candidate.slots != fingerprint(flow):
        del flow.notes[NOTE]
        return None
    return candidate


def write_candidate(flow: BaseFlow, candidate: Candidate) -> None:
    flow.notes[NOTE] = {
        "tool_id": candidate.tool_id,
        "arguments": candidate.arguments,
        "data": candidate.data,
        "slots": candidate.slots,
        "confirmed": candidate.confirmed,
        "again": candidate.again,
    }


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
