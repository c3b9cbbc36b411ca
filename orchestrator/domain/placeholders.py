"""Placeholders in the manifest: ``{city}`` stands for an input, ``${API_KEY}`` for an environment variable.

Only finds and fills them; where they are allowed is said in `check_outside`.
"""

import re
from collections.abc import Callable

_PLACEHOLDER = re.compile(r"\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\}|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


def input_placeholders(text: str) -> list[str]:
    """Names of the inputs that a text refers to."""
    return [match["name"] for match in _PLACEHOLDER.finditer(text) if match["name"]]


def variable_placeholders(text: str) -> list[str]:
    """Names of the environment variables that a text refers to."""
    return [match["variable"] for match in _PLACEHOLDER.finditer(text) if match["variable"]]


def sole_input(text: str) -> str | None:
    """The input that is the whole text, which then keeps its type."""
    match = _PLACEHOLDER.fullmatch(text)
    return match["name"] if match else None


def fill_placeholders(
    text: str, give_input: Callable[[str], str], give_variable: Callable[[str], str]
) -> str:
    """Put values in, once: what they contain is not looked at again."""

    def give(match: re.Match[str]) -> str:
        return give_input(match["name"]) if match["name"] else give_variable(match["variable"])

    return _PLACEHOLDER.sub(give, text)
