"""Decoded states of sessions that stay on a process. What they hold is the business of `state`."""

from collections import OrderedDict
from dataclasses import dataclass

from orchestrator.dialogue.state import DialogueState
from orchestrator.types import JsonObject, SessionId


@dataclass(frozen=True, slots=True)
class Decoded:
    """`body` is the state as serialised; nobody changes it."""

    raw: bytes
    body: JsonObject
    state: DialogueState


class StateCache:
    """Decoded states of sessions that stay on this process, so that they are not parsed again every turn.

    An entry is found by the very bytes it was written as: whatever another process commits meanwhile has others.
    Taking it removes it, because a turn changes it in place. Of more than `size`, the one kept longest ago goes.
    """

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._entries: OrderedDict[SessionId, Decoded] = OrderedDict()

    def take(self, session_id: SessionId, raw: bytes) -> Decoded | None:
        """Remove and give the session's entry if it was written as exactly these bytes."""
        found = self._entries.pop(session_id, None)
        return found if found is not None and found.raw == raw else None

    def keep(self, session_id: SessionId, decoded: Decoded) -> None:
        """Remember what the session's next turn is likely to begin with."""
        self._entries[session_id] = decoded
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
