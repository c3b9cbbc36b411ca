"""English texts of messages to users, for tests of code outside RES, and templates as they are written."""

from functools import cache

from jinja2 import Environment, nodes

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.domain.model import TEMPLATE_FILTERS, Domain
from orchestrator.res.templates import word_for
from orchestrator.saying import Told


@cache
def _english_domain() -> Domain:
    return load_domain("travel").domain


def english(told: Told | None) -> str:
    return "" if told is None else word_for(_english_domain(), told)


def parse_template(source: str) -> nodes.Template:
    environment = Environment(autoescape=True)
    environment.filters.update(dict.fromkeys(TEMPLATE_FILTERS, str))
    return environment.parse(source)
