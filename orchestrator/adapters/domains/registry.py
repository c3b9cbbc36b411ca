"""Which domains sessions may name: those that are shipped, and the one the process was started with.

A caller never names a folder: loading one runs its code.
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.adapters.domains.folder import shipped_domains
from orchestrator.errors import InvalidInput


class DomainRegistry:
    """Args:
    configured: name of a shipped domain or path of a folder; the default of new sessions.
    """

    def __init__(self, configured: str) -> None:
        self._places = {name: name for name in shipped_domains()}
        self.default = configured
        if configured not in self._places:
            folder = Path(configured).expanduser().resolve()
            self.default = folder.name
            self._places[self.default] = str(folder)

    def resolve(self, name: str | None) -> str:
        """The domain's name; the default one for None. Raises InvalidInput for an unknown one."""
        if name is None:
            return self.default
        if name not in self._places:
            known = ", ".join(sorted(self._places))
            raise InvalidInput(f"There is no domain {name!r}; known here: {known}.", field="domain")
        return name

    def names(self) -> list[str]:
        """Every domain that sessions may name, sorted."""
        return sorted(self._places)

    def place(self, name: str) -> str:
        """Translate a name into what `load_domain` takes: the name itself or a folder. Raises InvalidInput."""
        return self._places[self.resolve(name)]
