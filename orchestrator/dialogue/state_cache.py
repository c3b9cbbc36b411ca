"""Decoded states of sessions that stay on a process. What they hold is the business of `state`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestrator.dialogue.base_flow import BaseFlow
from orchestrator.dialogue.flow import FlowTypes
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.types import JsonObject, SessionId


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded state. `body`: its serialized form, never changed."""

    raw: bytes
    body: JsonObject
    state: DialogueState

    def catch_up(self, patches: Iterable[JsonObject], flow_types: FlowTypes) -> Decoded:
        """Return the state after patches by other processes, consuming this one; `raw` stays.

        Parts that no patch touches are reused as the same objects. Raises SchemaTooNew.
        """
        known, body = self.state, rebuild(self.body, patches)
        flows = dict(_flows_of(self.body, known))
        anew = {name: [one for one in body[name] if id(one) not in flows] for name in _FLOWS}
        same = [name for name in _AS_FIELDS if name in body and body[name] is self.body.get(name)]
        changed = {name: part for name, part in body.items() if name not in same}
        state = DialogueState.from_dict({**changed, **anew}, flow_types)
        flows.update(_flows_of(anew, state))
        stack, departed, state.completed = ([flows[id(one)] for one in body[name]] for name in _FLOWS)
        state.stack.flows, state.stack.departed = stack, departed
        for name in same:
            setattr(state, name, getattr(known, name))
        state.copies, state.written = known.copies, known.written | state.written
        return Decoded(self.raw, body, state)


_FLOWS = ("stack", "departed", "completed")
_AS_FIELDS = ("effects", "shown", "shown_before", "later")
"""Written under the names of their fields."""


def _flows_of(body: JsonObject, state: DialogueState) -> Iterator[tuple[int, BaseFlow]]:
    """Yield each flow of a state with the identity of its serialized form."""
    flows = (*state.stack.flows, *state.stack.departed, *state.completed)
    written = (id(one) for name in _FLOWS for one in body[name])
    return zip(written, flows, strict=True)


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
        """Cache the state with which the session's next turn probably starts."""
        self._entries[session_id] = decoded
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
