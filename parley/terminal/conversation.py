"""A conversation over HTTP. Each message or click is one turn with one answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from orchestrator.domain.export_links import PREFIX as EXPORTS
from parley_client import Client

Turn: TypeAlias = dict[str, Any]
"""A turn object or a receipt, as returned by the HTTP API."""

_SPEAKERS = {"user": "You", "agent": "Parley"}
WAIT_S = 30.0
RUNNING = frozenset({"queued", "running"})


@dataclass(frozen=True, slots=True)
class Place:
    """The user's time zone and locale, or None to keep the session's values."""

    timezone: str | None = None
    locale: str | None = None


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Conversation:
    client: Client
    session_id: str
    domain: str | None = None
    user_id: str | None = None
    place: Place = NOWHERE

    @classmethod
    def begin(
        cls,
        client: Client,
        *,
        domain: str | None,
        session_id: str | None,
        user_id: str | None = None,
        place: Place = NOWHERE,
    ) -> Conversation:
        """Create a session, or continue the session with the ID `session_id` if it exists."""
        made = client.create_session(
            domain, session_id=session_id, user_id=user_id, timezone=place.timezone, locale=place.locale
        )
        return cls(client, str(made["session_id"]), domain, user_id, place)

    def ask(self, text: str) -> Turn:
        """Send a message, and return its turn when the turn has ended."""
        return self.wait(self._submit(text=text, wait_s=WAIT_S))

    def say(self, text: str) -> Turn:
        """Send a message without waiting, and return the receipt."""
        return self._submit(text=text)

    def act(self, name: str, payload: dict[str, Any]) -> Turn:
        """Send an action, like a click, and return the receipt."""
        return self._submit(action={"name": name, "payload": payload})

    def _submit(self, **given: Any) -> Turn:
        place = self.place
        return self.client.submit(self.session_id, timezone=place.timezone, locale=place.locale, **given)

    def wait(self, turn: Turn) -> Turn:
        """Wait until the turn has ended, and return it."""
        while turn["status"] in RUNNING:
            turn = self.client.turn(str(turn["turn_id"]), wait_s=WAIT_S)
        return turn

    def words_of(self, turn: Turn) -> str:
        """Return the turn's reply, with absolute URLs of exports."""
        return answer_of(turn).replace(EXPORTS, f"{self.client.base_url.rstrip('/')}{EXPORTS}")


def line_of(said: dict[str, Any]) -> str:
    """Format a message from a session's history. An action appears as its name, and a repair with its reason."""
    content = str(said["content"])
    if said["form"] == "action" and content.startswith("{"):  # erased actions are plain text
        action = json.loads(content)
        repairs = [one["kind"].replace("_", " ") for one in action.get("repairs", ())]
        content = f"({', '.join(repairs)}: {action['why']})" if repairs else f"({action['name']})"
    return f"{_SPEAKERS.get(said['role'], said['role'])}: {content}"


def answer_of(turn: Turn) -> str:
    """Return the reply, or a turn's status if it has no reply."""
    return turn.get("reply") or f"(no answer: the turn is {turn['status']})"
