"""Placeholders in the manifest: ``{city}`` is an input, ``${API_KEY}`` an environment variable.

``${user.calendar}`` is a credential of the user. In HTTP tools, ``{user_id}`` and ``{session_id}`` are the
caller's IDs, and ``{callback_url}`` is the URL for a late result. `compile.endpoints` decides where
placeholders are permitted.
"""

import re
from collections.abc import Callable
from typing import Final

CALLERS_OWN: Final = ("session_id", "user_id", "callback_url")
"""Placeholders that are reserved for data about the caller or the call."""

_PLACEHOLDER = re.compile(
    r"\$\{user\.(?P<credential>[a-z][a-z0-9_]*)\}"
    r"|\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\}"
    r"|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"
)


def input_placeholders(text: str) -> list[str]:
    return [match["name"] for match in _PLACEHOLDER.finditer(text) if match["name"]]


def variable_placeholders(text: str) -> list[str]:
    return [match["variable"] for match in _PLACEHOLDER.finditer(text) if match["variable"]]


def credential_placeholders(text: str) -> list[str]:
    return [match["credential"] for match in _PLACEHOLDER.finditer(text) if match["credential"]]


def sole_input(text: str) -> str | None:
    """Return the input's name if its placeholder is the whole text, or None.

    The input's value then keeps its type.
    """
    match = _PLACEHOLDER.fullmatch(text)
    return match["name"] if match else None


def fill_placeholders(
    text: str,
    give_input: Callable[[str], str],
    give_variable: Callable[[str], str],
    give_credential: Callable[[str], str] = lambda name: f"${{user.{name}}}",
) -> str:
    """Replace each placeholder with the value that a function returns for its name.

    Placeholders in the values are not expanded. Without `give_credential`, credential placeholders stay
    unchanged.
    """

    def give(match: re.Match[str]) -> str:
        if match["credential"]:
            return give_credential(match["credential"])
        return give_input(match["name"]) if match["name"] else give_variable(match["variable"])

    return _PLACEHOLDER.sub(give, text)
