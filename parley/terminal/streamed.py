"""Collect partial answers while they stream (RT-15).

The module also collects the answers of turns that this chat did not submit, such as tasks that resume
automatically.
"""

import contextlib
import threading
from collections.abc import Callable

from orchestrator.errors import ParleyError
from parley.terminal.words import plain
from parley_client import Client, SessionEvent

LEADER = "Parley: "


class StreamedWords:
    """The partial answer of a running turn, and the answers of other turns that are not yet printed.

    `write`: prints a line. `changed`: redraws the prompt.
    """

    def __init__(self, write: Callable[[str], None], changed: Callable[[], object]) -> None:
        self._write = write
        self._changed = changed
        self._lock = threading.Lock()
        self._turn_id: str | None = None
        self._words = ""
        self._busy = 0
        self._over: set[str] = set()
        self._others: list[tuple[str, str]] = []

    @property
    def written(self) -> str:
        words = self._words
        return f"{LEADER}{plain(words)}" if words else ""

    def begin(self) -> None:
        """Increase the number of pending answers."""
        with self._lock:
            self._busy += 1

    def take(self, event: SessionEvent) -> None:
        """Add a token event's text to the partial answer, at the event's offset. Ignore repeated text and gaps."""
        text, offset = str(event.payload.get("text", "")), int(event.payload.get("offset", 0))
        with self._lock:
            if not self._busy or event.turn_id in self._over:
                return  # no answer is pending, or the turn has ended
            if event.turn_id != self._turn_id:
                self._turn_id, self._words = event.turn_id, ""
            kept = self._words[:offset] + text
            if offset > len(self._words) or (kept and self._words.startswith(kept)):
                return  # a part is missing and the whole answer follows, or a retry repeats a part
            self._words = kept
        self._changed()

    def answered(self, turn_id: str, reply: str) -> None:
        """Print a turn's answer when no answers are pending, unless `end` has been called for the turn."""
        with self._lock:
            self._others.append((turn_id, reply))
            self._print_others()

    def end(self, turn_id: str) -> None:
        """Discard the partial answer of a finished turn. The caller prints the whole answer."""
        with self._lock:
            self._over.add(turn_id)
            if turn_id == self._turn_id:
                self._turn_id, self._words = None, ""

    def finish(self) -> None:
        """Decrease the number of pending answers. At zero, print the answers of other turns."""
        with self._lock:
            self._busy -= 1
            self._print_others()

    def _print_others(self) -> None:
        if self._busy:
            return
        for turn_id, reply in self._others:
            if turn_id not in self._over:
                self._write(f"{LEADER}{plain(reply)}")
        self._others.clear()


def listen(client: Client, session_id: str, words: StreamedWords) -> None:
    """Pass the session's streamed text and answers to `words`, in a background thread."""

    def follow() -> None:
        # If the stream fails, answers arrive in one piece. The conversation reports a lost connection.
        with contextlib.suppress(ParleyError):
            for event in client.stream(session_id, after=None):
                if event.type == "token":
                    words.take(event)
                elif event.type == "answer" and event.payload.get("reply"):
                    words.answered(str(event.turn_id), str(event.payload["reply"]))

    threading.Thread(target=follow, name="streamed words", daemon=True).start()
