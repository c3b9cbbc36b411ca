"""What Flower and the log are told of tasks that outsiders send: identifiers, never contents (RT-22).

Senders put a text of their arguments into a message's header, and Celery passes it on, as it does the
text of the result. Both are replaced here, whoever sent the message.
"""

from __future__ import annotations

from typing import Any, Final

from celery.worker.request import Request

HIDDEN: Final = "<not shown>"
SHOWN_NAMES: Final = ("session_id", "flow", "trigger", "sequence")
SHOWN_LENGTH: Final = 128


def show_arguments(arguments: dict[str, Any]) -> str:
    """The identifiers among the arguments, as people read them in Flower."""
    shown = {name: arguments[name] for name in SHOWN_NAMES if arguments.get(name) is not None}
    return "{" + ", ".join(f"{name}: {str(value)[:SHOWN_LENGTH]}" for name, value in shown.items()) + "}"


class DiscreetRequest(Request):
    """Celery's record of a received task, with nothing of what the user said in it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        kwargs = self.kwargs
        self._argsrepr = "()"
        self._kwargsrepr = show_arguments(kwargs) if isinstance(kwargs, dict) else HIDDEN

    def send_event(self, type: str, **fields: Any) -> None:  # noqa: A002  # the name that Celery gives it
        """Send a task event, its result hidden."""
        if "result" in fields:
            fields["result"] = HIDDEN
        super().send_event(type, **fields)


DISCREET: Final = {"Request": "workers.shown:DiscreetRequest", "resultrepr_maxsize": 0}
"""Options of a task whose arguments or result carry contents."""
