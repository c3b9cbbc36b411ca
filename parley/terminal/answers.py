"""Display answers in the session's order, while the user types."""

import threading

from orchestrator.errors import NotFound, ParleyError
from parley.terminal.commands import Talk
from parley.terminal.conversation import RUNNING, Conversation, Turn
from parley.terminal.show import show_turn
from parley.terminal.streamed import StreamedWords
from parley.terminal.words import clean, describe_progress


class Answers:
    """The pending answers, each awaited in a thread. `shown`: a lock, held while an answer or a command prints."""

    def __init__(self, talk: Talk, words: StreamedWords) -> None:
        self.talk = talk
        self.shown = threading.RLock()
        self._words = words
        self._awaited: dict[str, Turn] = {}
        self._waiting: list[threading.Thread] = []

    @property
    def status(self) -> str:
        """The status line: the flow stack and, while answers are pending, a note."""
        return f"answering… · {self.talk.status}" if self._awaited else self.talk.status

    def expect(self, conversation: Conversation, turn: Turn | None) -> None:
        """Display the answer when it arrives, without blocking. `turn`: the receipt of a new turn, if any."""
        if turn is None:
            self._words.finish()
            return
        with self.shown:
            self._awaited[turn["turn_id"]] = turn
        waiting = threading.Thread(target=self._follow, args=(conversation, turn), daemon=True)
        self._waiting = [*(each for each in self._waiting if each.is_alive()), waiting]
        waiting.start()

    def wait(self) -> None:
        for waiting in self._waiting:
            waiting.join()

    def _follow(self, conversation: Conversation, turn: Turn) -> None:
        try:
            conversation.wait(turn)
            with self.shown:
                self._show_ended(conversation)
        except ParleyError as error:  # the next message reports that the gateway is lost
            self._awaited.pop(turn["turn_id"], None)
            self.talk.note(f"parley: {clean(error)}")
        finally:
            self._words.finish()

    def _show_ended(self, conversation: Conversation) -> None:
        """Display finished turns in the order in which the session answered them."""
        now = [conversation.client.turn(turn_id) for turn_id in self._awaited]
        ended = [turn for turn in now if turn["status"] not in RUNNING]
        for turn in sorted(ended, key=lambda turn: (turn["epoch"] or 0, turn["seq"])):
            del self._awaited[turn["turn_id"]]
            self._words.end(turn["turn_id"])
            self._note(conversation, turn)
            show_turn(self.talk.console, {**turn, "reply": conversation.words_of(turn)})

    def _note(self, conversation: Conversation, turn: Turn) -> None:
        if conversation is not self.talk.conversation:
            return
        self.talk.turn, self.talk.progress = turn, ""
        if not (turn.get("flags") or {}).get("has_plan"):
            return
        try:
            self.talk.progress = describe_progress(conversation.client.plan(conversation.session_id))
        except NotFound:
            return
