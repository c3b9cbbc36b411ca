"""The answer as a client gets it: the seven parts of RS-7, read from a turn object.

What may be markup and what is text only is defined in `markup`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from orchestrator.types import JsonObject


@dataclass(frozen=True, slots=True)
class Payload:
    """`message` is in the Markdown subset of `markup`; every other text is plain text.

    `raw_utterance`: what the user wrote; None for a click. `actions`: suggested replies, each with
    `label`, `name` and `payload`. `interaction`: how the open question is answered. `code_snippet`:
    `language` and `code` of what was run, if anything. `frame`: what is shown, with its `block`.
    `properties`: how the answer came about.
    """

    message: str
    raw_utterance: str | None
    actions: list[JsonObject]
    interaction: JsonObject
    code_snippet: JsonObject | None
    frame: JsonObject | None
    properties: JsonObject

    def serialize(self) -> JsonObject:
        """As JSON, with these seven keys and no other."""
        return asdict(self)


def read_payload(turn: JsonObject) -> Payload:
    """The payload of a turn object, also of one that ended without an answer of its own."""
    return Payload(
        message=turn.get("reply") or "",
        raw_utterance=turn.get("text"),
        actions=turn.get("actions") or [],
        interaction=turn.get("interaction") or {"kind": "none"},
        code_snippet=turn.get("code_snippet"),
        frame=turn.get("frame"),
        properties=turn.get("properties") or {},
    )
