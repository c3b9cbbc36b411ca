"""The local classifier (System 1) as an NLU component."""

from orchestrator.nlu.protocol import Reader
from orchestrator.nlu.readers.setup import ReaderSetup


def make(setup: ReaderSetup) -> Reader:
    return setup.system1.read
