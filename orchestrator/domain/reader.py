"""What a domain's `reader.py` builds on: what was said and where the conversation stands, and what it reads.

Public to domains. A reader knows what examples cannot teach: the names of a catalogue and the grammar of
requests about them. It is asked before what was learnt, and leaves to it whatever it does not read.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date

from orchestrator.dialogue.understanding import Mention
from orchestrator.types import Dact, Json

__all__ = ["Heard", "Mention", "Past", "Read", "Reader"]


@dataclass(frozen=True, slots=True)
class Past:
    """A task that was completed, with its values and what it found."""

    dact: Dact
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    outputs: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Heard:
    """A cleaned message in its situation.

    `active`: the task at work; `values`: what it holds; `asked`: the slot of the open question;
    `confirming`: a yes or no is awaited. `completed`: latest first. `own`: values that only this
    session has, by entity, with what is known of each.
    """

    text: str
    today: date
    active: Dact | None = None
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    asked: str | None = None
    confirming: bool = False
    completed: tuple[Past, ...] = ()
    own: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])


@dataclass(frozen=True, slots=True)
class Read:
    """What a message asks for.

    Args:
        flow: the task; the active one where the message answers its question.
        slots: values by slot; they are judged by the slots' types like all others.
        sure: from 0 to 1; how much of the message it explains.
        assumed: what was taken for something else, one sentence each, for the user.
    """

    flow: Dact
    slots: Mapping[str, Mention] = field(default_factory=dict[str, Mention])
    sure: float = 1.0
    assumed: tuple[str, ...] = ()


Reader = Callable[[Heard], Read | None]
"""Reads a message, or leaves it: None. Must not raise, wait or change anything."""
