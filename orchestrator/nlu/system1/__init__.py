"""The local classifier (System 1), which interprets messages without a language model.

Packages outside `orchestrator.nlu` use only the exports of this module.
"""

from orchestrator.nlu.system1.reader import System1

__all__ = ["System1"]
