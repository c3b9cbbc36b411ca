"""Celery's canvas guide with turns as tasks: each entry sends a canvas and lists the expected results."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import redis
from celery import Celery, Signature, chain, chord, chunks, group

from tests.integration.chaos.fleet import wait_until
from tests.integration.front_door.plain_backend import LOG, THEIRS

REFUSED = {"text": "  "}
"""Arguments of a turn that is refused."""


class Sender:
    """A backend with its own queue. `wait`: True if its turns wait for the answer. `words`: text of each turn."""

    def __init__(
        self, app: Celery, server: redis.Redis, wait: float | None, name: str, words: str, within_s: float
    ) -> None:
        self.app, self.wait, self.words, self.within_s = app, wait, words, within_s
        self.server = server
        self.name = name

    def turn(self, session: str, **more: Any) -> Signature:
        """Return a signature of a turn in a session."""
        arguments = {"session_id": f"{self.name}-{session}", "domain": "counting", "text": self.words, **more}
        return self.submitting({name: given for name, given in arguments.items() if given is not None})

    def submitting(self, arguments: dict[str, Any]) -> Signature:
        if self.wait is not None:
            arguments["wait"] = self.wait
        return self.app.signature("orchestrator.submit_turn", kwargs=arguments, queue="submissions")

    def note(self, tag: str, *, immutable: bool = False, **options: Any) -> Signature:
        """Return a signature of the backend's own task, in its own queue."""
        kwargs = {"tag": f"{self.name}-{tag}"}
        return self.app.signature(
            "theirs.note", kwargs=kwargs, queue=THEIRS, immutable=immutable, app=self.app, **options
        )

    def get(self, result: Any) -> Any:
        return result.get(timeout=self.within_s, interval=0.05)

    def noted(self, tag: str, count: int = 1) -> list[list[Any]]:
        """Return the arguments of the backend's task, once for each task ID."""

        def found() -> dict[str, list[Any]]:
            return {entry["id"]: entry["args"] for entry in self._entries(tag)}

        wait_until(
            lambda: len(found()) >= count, within_s=self.within_s, what=f"{tag} of {self.name} has run"
        )
        return list(found().values())

    def calls(self, tag: str) -> list[str]:
        """Return the task IDs of all calls of the backend's task, including repeated calls."""
        return [entry["id"] for entry in self._entries(tag)]

    def _entries(self, tag: str) -> list[dict[str, Any]]:
        entries = [json.loads(entry) for entry in self.server.lrange(LOG, 0, -1)]
        return [entry for entry in entries if entry["tag"] == f"{self.name}-{tag}"]

    def require_answer(self, given: Any, session: str) -> None:
        """Check for the turn object with `wait`, or else for the receipt."""
        assert given["session_id"] == f"{self.name}-{session}"
        if self.wait is None:
            assert sorted(given) == ["position", "seq", "session_id", "status", "turn_id"]
        else:
            assert (given["status"], given["reply"]) == ("done", "1")


def link(sender: Sender) -> None:
    result = sender.turn("a").apply_async(link=[sender.note("one"), sender.note("two")])
    sender.require_answer(sender.get(result), "a")
    for tag in ("one", "two"):
        ((given,),) = sender.noted(tag)
        sender.require_answer(given, "a")


def link_error(sender: Sender) -> None:
    result = sender.turn("a", **REFUSED).apply_async(
        link=sender.note("done"), link_error=sender.note("error")
    )
    with pytest.raises(Exception, match="invalid_input") as caught:
        sender.get(result)
    code, reason, field = caught.value.args
    assert (type(caught.value).__name__, code, field) == ("TaskRefused", "invalid_input", "text")
    assert result.state == "FAILURE"
    assert "is empty" in reason
    assert sender.noted("error") == [[result.id]]
    assert sender.noted("done", 0) == []


def behind_and_before(sender: Sender) -> None:
    """The previous task's result is the text, and the turn's result is passed to the next task."""
    say = sender.app.signature("theirs.say", args=["hello"], queue=THEIRS)
    result = chain(say, sender.turn("a", text=None), sender.note("end"), app=sender.app).apply_async()
    (given,) = sender.get(result)
    sender.require_answer(given, "a")
    if sender.wait is not None:
        assert given["text"] == "say hello"
    assert len(sender.noted("end")) == 1


def turns_in_a_row(sender: Sender) -> None:
    """An unneeded result is ignored, and an immutable signature receives none."""
    row = chain(sender.turn("a"), sender.turn("b"), sender.turn("c").set(immutable=True), app=sender.app)
    sender.require_answer(sender.get(row.apply_async(link=sender.note("end"))), "c")
    ((given,),) = sender.noted("end")
    sender.require_answer(given, "c")


def broken_row(sender: Sender) -> None:
    row = chain(sender.turn("a", **REFUSED), sender.note("end"), app=sender.app)
    result = row.apply_async(link_error=sender.note("error"))
    with pytest.raises(Exception, match="invalid_input"):
        sender.get(result)
    assert len(sender.noted("error")) >= 1
    assert sender.noted("end", 0) == []


def side_by_side(sender: Sender) -> None:
    sessions = [str(number) for number in range(4)]
    together = group([sender.turn(session) for session in sessions], app=sender.app)
    for session, given in zip(sessions, sender.get(together.apply_async()), strict=True):
        sender.require_answer(given, session)


def joined(sender: Sender) -> None:
    header = [sender.turn(str(number)) for number in range(3)]
    result = chord(header, app=sender.app)(sender.note("body", immutable=False))
    ((given,),) = [sender.get(result)]
    assert sorted(one["session_id"] for one in given) == [f"{sender.name}-{number}" for number in range(3)]
    for one in given:
        sender.require_answer(one, one["session_id"].rpartition("-")[2])
    assert len(sender.noted("body")) == 1


def turn_as_body(sender: Sender) -> None:
    say = sender.app.signature("theirs.say", args=["hello"], queue=THEIRS)
    result = chord([say, say.clone()], app=sender.app)(sender.turn("a"))
    sender.require_answer(sender.get(result), "a")


def broken_join(sender: Sender) -> None:
    body = sender.note("body").on_error(sender.note("error"))
    result = chord([sender.turn("a"), sender.turn("b", **REFUSED)], app=sender.app)(body)
    with pytest.raises(Exception, match="invalid_input"):
        sender.get(result)
    assert sender.noted("error", 1)
    assert sender.noted("body", 0) == []


def in_chunks(sender: Sender) -> None:
    sessions = [f"{sender.name}-{number}" for number in range(4)]
    called = sender.submitting({"domain": "counting"})
    cut = chunks(called, [(session, sender.words) for session in sessions], 2, app=sender.app)
    told = sender.get(cut.apply_async(queue="submissions"))
    found = [one for part in told for one in part]
    assert [one["session_id"] for one in found] == sessions
    for one in found:
        sender.require_answer(one, one["session_id"].rpartition("-")[2])


def replaced(sender: Sender) -> None:
    arguments = dict(sender.turn("a").kwargs)
    handed = sender.app.signature("theirs.hand_over", args=[arguments], queue=THEIRS)
    result = chain(handed, sender.note("end"), app=sender.app).apply_async()
    (given,) = sender.get(result)
    sender.require_answer(given, "a")


CANVASES: list[Callable[[Sender], None]] = [
    link,
    link_error,
    behind_and_before,
    turns_in_a_row,
    broken_row,
    side_by_side,
    joined,
    turn_as_body,
    broken_join,
    in_chunks,
    replaced,
]


def sessions_twice(rows: list[tuple[str, int]]) -> list[str]:
    """Return the sessions that have more turns than were sent."""
    return [session for session, turns in Counter(dict(rows)).items() if turns != 1]


def settle(seconds: float) -> None:
    """Wait until a possible duplicate would have arrived."""
    time.sleep(seconds)
