"""The local classifier (System 1) as an NLU component."""

from orchestrator.nlu.protocol import Reader, ReaderSetup


def make(setup: ReaderSetup) -> Reader:
    return setup.system1
