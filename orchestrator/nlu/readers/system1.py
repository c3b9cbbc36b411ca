"""System 1, in its place among the readers."""

from orchestrator.nlu.protocol import Reader, ReaderSetup


def make(setup: ReaderSetup) -> Reader:
    return setup.system1
