"""Templates of answers: sandboxed, every value escaped, each compiled when it is first used (RS-3, RS-7).

A domain's own template of a name goes before the base one. What is said when, is not decided here, and what is
wrong with a template is found when its domain is loaded.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files

from jinja2 import DictLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from orchestrator.domain.model import TEMPLATE_FILTERS, Domain
from orchestrator.domain.registry import Registry
from orchestrator.res.wording import show_count, show_date, show_money, show_time
from orchestrator.types import Json

SUFFIX = ".md.j2"
_BLANK_LINES = re.compile(r"\n{3,}")
_FIXED = re.compile(r"\{#-?\s*naturalize:\s*off\s*-?#\}")
_SPACES_AT_END = re.compile(r"[ \t]+\n")


INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""Control characters and those that change the direction of text or hide in it."""

ACTIVE = re.compile(
    r"[\\`*\[\]<>]|(?<!\w)_|_(?!\w)|^(?=#{1,6}\s|[+\-]\s|\d+[.)]\s|---|~~~|\|)|\n",
)


def escape_value(value: Json | Markup) -> Markup:
    """The value as text that no renderer takes for markup; line ends become spaces."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return Markup("")
    text = value if isinstance(value, str) else str(value)
    if INVISIBLE.search(text):
        text = INVISIBLE.sub("", text)
    if ACTIVE.search(text):
        text = ACTIVE.sub(_disarm, text)
    return Markup(text)  # noqa: S704 - it has just been escaped for Markdown


def _disarm(found: re.Match[str]) -> str:
    return " " if found[0] == "\n" else "\\" + found[0]


def load_base_templates() -> dict[str, str]:
    """The shared templates, by name."""
    folder = files("orchestrator.res") / "templates"
    return {
        entry.name.removesuffix(SUFFIX): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(SUFFIX)
    }


class Templates:
    def __init__(self, domain: Domain, registry: Registry, base: Mapping[str, str]) -> None:
        sources = {**base, **domain.templates}
        self._names = frozenset(sources)
        self._fixed = frozenset(name for name, source in sources.items() if _FIXED.search(source))
        self._environment = ImmutableSandboxedEnvironment(
            loader=DictLoader(sources),
            auto_reload=False,
            cache_size=len(sources),
            autoescape=True,
            finalize=escape_value,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters: dict[str, Callable[..., str]] = {
            "day": show_date,
            "time": show_time,
            "money": show_money,
            "name": partial(_name, registry),
            "counted": show_count,
        }
        assert filters.keys() == TEMPLATE_FILTERS
        self._environment.filters.update(filters)  # pyright: ignore[reportUnknownMemberType]

    def first(self, *names: str) -> str | None:
        """The first of these names that has a template."""
        return next((name for name in names if name in self._names), None)

    def is_fixed(self, name: str) -> bool:
        """Whether a template's words must not be rewritten: it holds ``{# naturalize: off #}`` (RS-3)."""
        return name in self._fixed

    def render(self, name: str, **values: Json) -> str:
        """Fill a template; blank lines are kept to one, ends are trimmed."""
        text = self._environment.get_template(name).render(values)
        return _BLANK_LINES.sub("\n\n", _SPACES_AT_END.sub("\n", text)).strip()


def _name(registry: Registry, value: Json, entity: str) -> str:
    """The filter ``value | name("airport")``."""
    return registry.name(entity, value)
