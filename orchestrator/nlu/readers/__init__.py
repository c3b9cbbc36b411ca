"""NLU components in order. The first final interpretation is used (NL-1, NL-2).

`make_readers` omits components that a domain doesn't need.
"""

from collections.abc import Callable

from orchestrator.nlu.protocol import Reader
from orchestrator.nlu.readers import (
    added_steps,
    commands,
    pages,
    plain_answers,
    plan_changes,
    refusals,
    system1,
    system2,
)
from orchestrator.nlu.readers.setup import ReaderSetup

READERS: tuple[Callable[[ReaderSetup], Reader | None], ...] = (
    refusals.make_unreadable,  # rejects messages that are too long or empty, or imitate a model's special tokens
    commands.make,  # matches the domain's patterns, which start a flow or give an answer
    plain_answers.make,  # interprets a plain yes or no
    plain_answers.make_talk,  # interprets thanks, goodbyes and complaints from fixed lists
    pages.make,  # interprets requests for another page of the table displayed last
    refusals.make_unlikely,  # rejects messages that are too short, repeated or in an unsupported language
    plan_changes.make,  # changes the running plan: skips or moves a step, reports the status, drops the plan
    added_steps.make,  # adds a step to the running plan
    system1.make,  # interprets without a model: choices, references and corrections by rules, then the classifier
    system2.make,  # asks the model, with the local classifier as the fallback
)


def make_readers(setup: ReaderSetup) -> tuple[Reader, ...]:
    return tuple(reader for make in READERS if (reader := make(setup)) is not None)
