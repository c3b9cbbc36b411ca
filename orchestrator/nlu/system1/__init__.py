"""System 1: the local classifier, which interprets messages without a language model.

Other packages use what this module exports. Only NLU's own modules import the parts.
"""

from orchestrator.nlu.system1.reader import System1
from orchestrator.nlu.system1.requests import unexplained

__all__ = ["System1", "unexplained"]
