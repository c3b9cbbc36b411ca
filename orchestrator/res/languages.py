"""The runtime's templates and sayings, with one folder per language.

Languages without a folder use English.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from orchestrator.domain.locales import ENGLISH, language_in_use

SUFFIX = ".md.j2"
SAYING = "say."
"""Prefix of template names for sayings."""
LANGUAGES = {"en": "English", "de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "nl": "Dutch"}
_FOLDER = files("orchestrator.res") / "templates"
_SAYINGS = "sayings.toml"


@cache
def languages_worded() -> frozenset[str]:
    """Return the codes of the languages that have a templates folder."""
    return frozenset(entry.name for entry in _FOLDER.iterdir() if entry.is_dir())


@cache
def load_base_templates(language: str = ENGLISH) -> Mapping[str, str]:
    """Return a language's base templates and sayings, by template name."""
    if language not in languages_worded():
        return load_base_templates(ENGLISH)
    sayings = {f"{SAYING}{code}": text for code, text in load_sayings(language).items()}
    return sayings | {
        entry.name.removesuffix(SUFFIX): entry.read_text(encoding="utf-8")
        for entry in (_FOLDER / language).iterdir()
        if entry.name.endswith(SUFFIX)
    }


@cache
def load_sayings(language: str = ENGLISH) -> Mapping[str, str]:
    """Return a language's short sentences and labels, as templates by code."""
    if language not in languages_worded():
        return load_sayings(ENGLISH)
    return tomllib.loads((_FOLDER / language / _SAYINGS).read_text(encoding="utf-8"))


def word(code: str) -> str:
    """Return a saying without variables, in the running turn's language."""
    return load_sayings(language_in_use())[code]
