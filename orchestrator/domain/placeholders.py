"""Placeholders in the manifest: ``{city}`` is an input, ``${API_KEY}`` an environment variable.

``${user.calendar}`` is the user's own credential of this name. ``{user_id}`` and ``{session_id}`` of an HTTP tool are
the caller's; ``{callback_url}`` takes a later result.

Only finds and fills them; `check_outside` decides where they are permitted.
"""

import re
from collections.abc import Callable
from typing import Final

CALLERS_OWN: Final = ("session_id", "user_id", "callback_url")
"""Placeholders that stand for whom an HTTP tool is called for, or for the call itself, not for an input."""

_PLACEHOLDER = re.compile(
    r"\$\{user\.(?P<credential>[a-z][a-z0-9_]*)\}"
    r"|\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\}"
    r"|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"
)


def input_placeholders(text: str) -> list[str]:
    """Return the inputs used by a text."""
    return [match["name"] for match in _PLACEHOLDER.finditer(text) if match["name"]]


def variable_placeholders(text: str) -> list[str]:
    """Return the environment variables used by a text."""
    return [match["variable"] for match in _PLACEHOLDER.finditer(text) if match["variable"]]


def credential_placeholders(text: str) -> list[str]:
    """Return the users' credentials used by a text."""
    return [match["credential"] for match in _PLACEHOLDER.finditer(text) if match["credential"]]


def sole_input(text: str) -> str | None:
    """Return the input if it is the whole text, which then keeps the input's type."""
    match = _PLACEHOLDER.fullmatch(text)
    return match["name"] if match else None


def fill_placeholders(
    text: str,
    give_input: Callable[[str], str],
    give_variable: Callable[[str], str],
    give_credential: Callable[[str], str] = lambda name: f"${{user.{name}}}",
) -> str:
    """Fill the placeholders once: values are not expanded again."""

    def give(match: re.Match[str]) -> str:
        if match["credential"]:
            return give_credential(match["credential"])
        return give_input(match["name"]) if match["name"] else give_variable(match["variable"])

    return _PLACEHOLDER.sub(give, text)
