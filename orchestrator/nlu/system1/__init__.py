"""System 1: reads a message without a language model.

Other packages use what this module exports. Only NLU's own modules import the parts.
"""

from orchestrator.nlu.system1.leftovers import unexplained
from orchestrator.nlu.system1.reader import System1

__all__ = ["System1", "unexplained"]
