"""Prints an answer's words while they come (RT-15), and answers that nobody waits for, such as of a task that
went on by itself. Words that turn out not to be the answer are followed by the answer.
"""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from orchestrator.client import Client
from orchestrator.errors import ParleyError
from parley.terminal.conversation import Turn, answer_of
from parley.terminal.words import plain

LEADER = "Parley: "


class StreamedWords:
    """The words of one turn so far. `write` prints without a line end."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._shown = ""
        self._open = False
        self._busy = False
        self._waited_for: set[str] = set()
        self._others: list[tuple[str, str]] = []

    def begin(self) -> None:
        """A new turn: nothing is printed yet."""
        with self._lock:
            self._shown, self._open, self._busy = "", True, True

    def take(self, payload: dict[str, Any]) -> None:
        """A piece and where it begins."""
        text, offset = str(payload.get("text", "")), int(payload.get("offset", 0))
        with self._lock:
            if not self._open or offset > len(self._shown):
                return  # of a turn that is over, or a piece is missing: the answer comes whole
            if offset < len(self._shown):
                self._start_over(offset, text)
                return
            if text:
                self._write(f"{'' if self._shown else LEADER}{plain(text)}")
                self._shown += text

    def _start_over(self, offset: int, text: str) -> None:
        kept = self._shown[:offset] + text
        if kept and self._shown.startswith(kept):
            return  # the same again, from another attempt
        self._write(" …\n")
        self._shown = ""
        if kept:
            self._write(f"{LEADER}{plain(kept)}")
            self._shown = kept

    def answered(self, turn_id: str, reply: str) -> None:
        """A turn of the session has its answer; one that was not waited for is printed, at the latest later."""
        with self._lock:
            self._others.append((turn_id, reply))
            if not self._busy:
                self._print_others()

    def finish(self) -> None:
        """Whatever was waited for has been shown: print the answers that came meanwhile."""
        with self._lock:
            self._open = self._busy = False
            self._print_others()

    def _print_others(self) -> None:
        for turn_id, reply in self._others:
            if turn_id not in self._waited_for:
                self._write(f"{LEADER}{plain(reply)}\n")
        self._others.clear()

    def end(self, turn: Turn) -> bool:
        """The turn is over: print what is missing; False when nothing of its answer was printed."""
        with self._lock:
            shown, self._shown, self._open = self._shown, "", False
            self._waited_for.add(str(turn["turn_id"]))
        reply = answer_of(turn)
        if not shown:
            return False
        if not reply.startswith(shown):
            self._write(" …\n")
            return False
        self._write(f"{plain(reply[len(shown) :])}\n")
        return True


def listen(client: Client, session_id: str, words: StreamedWords) -> None:
    """Follow a session's tokens and answers for as long as the process lives, beside the conversation."""

    def follow() -> None:
        # Without events the answers come whole; that the gateway is gone, the conversation itself says.
        with contextlib.suppress(ParleyError):
            for event in client.stream(session_id, after=None):
                if event.type == "token":
                    words.take(event.payload)
                elif event.type == "answer" and event.payload.get("reply"):
                    words.answered(str(event.turn_id), str(event.payload["reply"]))

    threading.Thread(target=follow, name="streamed words", daemon=True).start()
