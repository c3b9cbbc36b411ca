"""A conversation over HTTP: something said or clicked is one turn through the queue, and has one answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from orchestrator.client import Client
from orchestrator.domain.export_links import PREFIX as EXPORTS

Turn: TypeAlias = dict[str, Any]
"""A turn object."""

_SPEAKERS = {"user": "You", "agent": "Parley"}
WAIT_S = 30.0
RUNNING = frozenset({"queued", "running"})


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session of a gateway."""

    client: Client
    session_id: str
    domain: str | None = None
    user_id: str | None = None
    ahead: str | None = None
    """By which rule of `if_busy` is sent what is typed ahead; None: by the session's own."""

    @classmethod
    def begin(
        cls, client: Client, *, domain: str | None, session_id: str | None, user_id: str | None = None
    ) -> Conversation:
        """Begin a session, or continue the one that has this identifier already."""
        made = client.create_session(domain, session_id=session_id, user_id=user_id)
        ahead = "understand" if made["if_busy"] == "enqueue" else None
        return cls(client, str(made["session_id"]), domain, user_id, ahead)

    def ask(self, text: str) -> Turn:
        """Say something, and wait for the end of the turn."""
        return self.wait(self.client.submit(self.session_id, text, wait_s=WAIT_S))

    def say(self, text: str) -> Turn:
        """Say something, whatever else is at work; gives the receipt of the turn."""
        return self.client.submit(self.session_id, text, if_busy=self.ahead)

    def act(self, name: str, payload: dict[str, Any]) -> Turn:
        """Send an action, as a click does; gives the receipt of the turn."""
        action = {"name": name, "payload": payload}
        return self.client.submit(self.session_id, action=action, if_busy=self.ahead)

    def wait(self, turn: Turn) -> Turn:
        """Wait for the end of a turn."""
        while turn["status"] in RUNNING:
            turn = self.client.turn(str(turn["turn_id"]), wait_s=WAIT_S)
        return turn

    def words_of(self, turn: Turn) -> str:
        """Give what the user reads, with whole addresses for what can be downloaded."""
        return answer_of(turn).replace(EXPORTS, f"{self.client.base_url.rstrip('/')}{EXPORTS}")


def line_of(said: dict[str, Any]) -> str:
    """Write an utterance of a history as a line; of an action its name, in brackets."""
    content = str(said["content"])
    if said["form"] == "action" and content.startswith("{"):  # words alone, when it was forgotten
        content = f"({json.loads(content)['name']})"
    return f"{_SPEAKERS.get(said['role'], said['role'])}: {content}"


def answer_of(turn: Turn) -> str:
    """Give what the user reads: the reply, or the way the turn ended without one."""
    return turn.get("reply") or f"(no answer: the turn is {turn['status']})"
