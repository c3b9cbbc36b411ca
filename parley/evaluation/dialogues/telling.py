"""What can be measured of annotated dialogues, who understands them, and how much is told."""

from __future__ import annotations

from enum import StrEnum


class Measured(StrEnum):
    SYSTEM1 = "system1"
    RUNTIME = "runtime"


class By(StrEnum):
    """Who understands the users."""

    ANNOTATIONS = "annotations"
    SYSTEM1 = "system1"
    AUTO = "auto"
    """System 1, and where it is not sure, the annotations."""
    MODEL = "model"


class Telling(StrEnum):
    """How much who understands rightly tells of a turn."""

    NEW = "new"
    """The values that the task at hand has not been told yet, whoever said them first."""
    RESTATED = "restated"
    """As `new`, and each known value when a task begins."""
    AGREED = "agreed"
    """As `new`, and with a yes the values that it agrees to."""
    WORDS = "words"
    """As `new`, and a correction names its task in words, and not by its flow."""
    SAID = "said"
    """Only the values that the user says in this turn."""
