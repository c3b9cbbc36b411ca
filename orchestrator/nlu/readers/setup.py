from dataclasses import dataclass

from orchestrator.domain.model import Domain
from orchestrator.domain.schema import LexiconFile
from orchestrator.nlu.protocol import Asker
from orchestrator.nlu.system1 import System1


@dataclass(frozen=True, slots=True)
class ReaderSetup:
    """Inputs for creating NLU components for a domain.

    `system1`: the trained local classifier. `asker`: the Prompt Engineer, if models are available.
    `development`: True to enable shortcuts for developers.
    """

    domain: Domain
    system1: System1
    asker: Asker | None = None
    development: bool = False

    @property
    def lexicons(self) -> list[LexiconFile]:
        """Return the lexicons of the domain's languages."""
        language = self.domain.config.language
        codes = dict.fromkeys((language.default, *language.supported))
        return [file for code in codes for file in self.domain.lexicons.get(code, ())]

    @property
    def assistant(self) -> str:
        config = self.domain.config
        return f"{config.persona.name}. {config.description}".strip()
