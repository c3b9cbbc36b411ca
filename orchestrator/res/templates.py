"""Answer templates: sandboxed, with all values escaped, compiled on first use (RS-3, RS-7).

A domain's template takes precedence over the base template with the same name. Loading a domain validates its
templates.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from types import CodeType
from typing import Any, NamedTuple

from jinja2 import DictLoader, StrictUndefined, Template, nodes, pass_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from orchestrator.domain.model import TEMPLATE_FILTERS, Domain
from orchestrator.domain.registry import Registry
from orchestrator.res.languages import SAYING, load_base_templates
from orchestrator.res.markup import to_plain
from orchestrator.res.wording import (
    join_choices,
    show_count,
    show_date,
    show_money,
    show_month,
    show_number,
    show_time,
)
from orchestrator.saying import Saying, Told
from orchestrator.types import Json, JsonObject

_BLANK_LINES = re.compile(r"\n{3,}")
_FIXED = re.compile(r"\{#-?\s*naturalize:\s*off\s*-?#\}")
_SPACES_AT_END = re.compile(r"[ \t]+\n")


INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""Control characters, invisible characters, and characters that change the text direction."""

ACTIVE = re.compile(
    r"[\\`*\[\]<>]|(?<!\w)_|_(?!\w)|^(?=#{1,6}\s|[+\-]\s|\d+[.)]\s|---|~~~|\|)|\n",
)

_PLAIN = re.compile(r"(?:[^\W_]|[€$£¥])(?:[^\W_]|[ ,:;/'(€$£¥-]|\.(?=[^\W_])|\)(?!\s))*+")
"""A pattern for values without active or invisible characters, which don't need escaping."""


def escape_value(value: Json | Markup) -> str:
    """Return the value as text with escaped markup, no invisible characters, and spaces in place of newlines."""
    if isinstance(value, Markup):
        return value
    text = "" if value is None else str(value)
    if not text or _PLAIN.fullmatch(text) is not None:
        return text
    return ACTIVE.sub(_disarm, INVISIBLE.sub("", text))


def _disarm(found: re.Match[str]) -> str:
    return " " if found[0] == "\n" else "\\" + found[0]


class _Writer(CodeGenerator):
    """A code generator that escapes all values with `escape_value`."""

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write("(environment.finalize(")


class _Environment(ImmutableSandboxedEnvironment):
    code_generator_class = _Writer

    def __init__(self, sources: Mapping[str, str], registry: Registry) -> None:
        super().__init__(
            loader=DictLoader(sources),
            auto_reload=False,
            cache_size=len(sources),
            autoescape=True,
            finalize=escape_value,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.registry = registry
        assert _FILTERS.keys() == TEMPLATE_FILTERS
        self.filters.update(_FILTERS)  # pyright: ignore[reportUnknownMemberType]

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a dictionary's item directly, which is faster than the sandbox's lookup."""
        if obj.__class__ is dict and attribute in obj and attribute not in _OF_DICTIONARIES:
            return obj[attribute]
        return super().getattr(obj, attribute)


_OF_DICTIONARIES = frozenset(dir(dict))


class _Compiled(NamedTuple):
    """A compiled template. `uses`: its variables, or None if it includes another template."""

    template: Template
    uses: Collection[str] | None


_MAY_TELL = frozenset({Saying, list, dict})


class Templates:
    def __init__(self, domain: Domain, registry: Registry, base: Mapping[str, str]) -> None:
        sources = {**base, **domain.templates}
        self._names = frozenset(sources)
        self._own = frozenset(domain.templates)
        self._fixed = frozenset(name for name, source in sources.items() if _FIXED.search(source))
        self._sources, self._compiled = sources, dict[str, _Compiled]()
        self.labels = {
            name.removeprefix(SAYING): source
            for name, source in sources.items()
            if name.startswith(SAYING) and "{" not in source
        }
        """Sayings without variables, by code."""
        self._environment = _Environment(sources, registry)

    def first(self, *names: str) -> str | None:
        """Return the first of `names` that has a template, or None."""
        return next(filter(self._names.__contains__, names), None)

    def is_own(self, name: str) -> bool:
        """Return whether the domain has a template with this name."""
        return name in self._own

    def is_fixed(self, name: str) -> bool:
        """Return whether a template forbids rephrasing: it contains ``{# naturalize: off #}`` (RS-3)."""
        return name in self._fixed

    def render(self, name: str, /, **values: Json) -> str:
        """Render a template, merge blank lines and trim the ends.

        A value that is a `partial` is called only if the template uses it. Sayings in the values are also rendered.
        """
        template, uses = self._compiled.get(name) or self._compile(name)
        given: JsonObject = {
            one: value() if isinstance(value, partial) else value
            for one, value in values.items()
            if uses is None or one in uses
        }
        for one, value in given.items():
            if value.__class__ in _MAY_TELL:
                given[one] = self._word_all(value)
        text = template.render(given)
        if "\n" in text:
            text = _BLANK_LINES.sub("\n\n", _SPACES_AT_END.sub("\n", text))
        return text.strip()

    def _word_all(self, value: Json) -> Json:
        if isinstance(value, Saying):
            return self.word(value)
        if value.__class__ is dict:
            is_told = any(isinstance(one, Saying) for one in value.values())
            return {name: self.word(one) for name, one in value.items()} if is_told else value
        if any(isinstance(one, Saying) for one in value):
            return [Markup(escape_value(self.word(one))) for one in value]  # noqa: S704  # escaped
        return [self._word_all(one) if one.__class__ is dict else one for one in value]

    def word(self, told: Told) -> str:
        """Return a message in the domain's language. A saying becomes safe markup."""
        if not isinstance(told, Saying):
            return told
        return Markup(self.render(f"{SAYING}{told.code}", **told.values))  # noqa: S704  # its values are escaped

    def label(self, told: Told) -> str:
        """Return a message in the domain's language, as plain text."""
        if not isinstance(told, Saying):
            return told
        return to_plain(self.word(told))

    def _compile(self, name: str) -> _Compiled:
        code, uses = _translate(self._sources[name], name)
        shared = dict(self._environment.make_globals(None))  # lookups in its ChainMap are slower
        template = Template.from_code(self._environment, code, shared)
        made = self._compiled[name] = _Compiled(template, uses)
        return made


def word_for(domain: Domain, told: Told) -> str:
    """Return a message in the domain's default language, as plain text, for use outside a turn."""
    return Templates(domain, Registry({}), load_base_templates(domain.config.language.default)).label(told)


@lru_cache(maxsize=1024)
def _translate(source: str, name: str) -> tuple[CodeType, Collection[str] | None]:
    """Return a template's code, which all domains share, and its variables (None if it includes a template)."""
    environment = _Environment({}, Registry({}))
    tree = environment.parse(source)
    takes_in = next(tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)), None)
    uses = find_undeclared_variables(tree) if takes_in is None else None
    return environment.compile(tree, name), uses


@pass_context
def _name(context: Context, value: Json, entity: str) -> str:
    """Implement the filter ``value | name("airport")``.

    The filter takes the context, so that Jinja does not evaluate it at compile time, in code that all domains
    share.
    """
    assert isinstance(context.environment, _Environment)
    return context.environment.registry.name(entity, value)


_FILTERS = {
    "day": show_date,
    "month": show_month,
    "time": show_time,
    "money": show_money,
    "name": _name,
    "counted": show_count,
    "grouped": show_number,
    "joined": join_choices,
}
