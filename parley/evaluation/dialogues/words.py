"""Users' messages as the words that are counted when a tracker decides."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestrator.nlu.classifier import delexicalize, features_of
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.extract.found import Candidate
from orchestrator.nlu.text import clean, tokenize
from parley.evaluation.dialogues.compile import TODAY


@dataclass(frozen=True, slots=True)
class Words:
    """Users' messages as words, by one extractor; each is looked at once."""

    extractor: Extractor
    _known: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def tokens(self, text: str) -> list[str]:
        """Cut a message into words, with its values replaced by their kinds."""
        if text not in self._known:
            utterance = tokenize(clean(text))
            candidates = self.extractor.find(utterance, TODAY)
            self._known[text] = delexicalize(utterance, [_without_lists(one) for one in candidates])
        return self._known[text]

    def features(self, text: str) -> dict[str, float]:
        return features_of(self.tokens(text))


def _without_lists(candidate: Candidate) -> Candidate:
    """Name a find that several lists hold just a value: so many services have lists that hardly two finds are alike."""
    form, several, _names = candidate.kind.partition("|")
    return replace(candidate, kind=form.partition(":")[0]) if several else candidate
