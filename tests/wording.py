"""English texts of messages to users, for tests of code outside RES."""

from functools import cache

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.domain.model import Domain
from orchestrator.res.templates import word_for
from orchestrator.saying import Told


@cache
def _english_domain() -> Domain:
    return load_domain("travel").domain


def english(told: Told | None) -> str:
    return "" if told is None else word_for(_english_domain(), told)
