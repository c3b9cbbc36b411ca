"""Names the extra that brings a module which is not installed, from what the package says of itself."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from typing import Final

# Modules that are not called as the package that brings them.
_PACKAGES: Final = {
    "jwt": "pyjwt",
    "kombu": "celery",
    "opentelemetry": "opentelemetry-api",
    "psycopg_pool": "psycopg",
    "pydantic_core": "pydantic",
    "starlette": "fastapi",
    "vl_convert": "vl-convert-python",
    "yaml": "pyyaml",
}
_REQUIREMENT: Final = re.compile(r"(?P<package>[A-Za-z0-9._-]+).*extra == ['\"](?P<extra>\w+)['\"]")


def extra_of(module: str) -> str | None:
    """Return the extra whose package has this module, and None for a module of nobody's."""
    top = module.split(".", maxsplit=1)[0]
    wanted = _normal(_PACKAGES.get(top, top))
    return next((extra for package, extra in _declared() if package == wanted), None)


def needs_extra(extra: str) -> str:
    """Say how to get an extra."""
    return f"This needs the extra `{extra}`, which is not installed: pip install 'parley[{extra}]'"


def explain_missing(error: BaseException) -> str | None:
    """Say what to install if an error comes, directly or at last, from a module that an extra brings."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError) and cause.name and (extra := extra_of(cause.name)):
            return needs_extra(extra)
        cause = cause.__cause__ or cause.__context__
    return None


@cache
def _declared() -> tuple[tuple[str, str], ...]:
    try:
        declared = requires("parley") or []
    except PackageNotFoundError:
        return ()
    found = map(_REQUIREMENT.match, declared)
    return tuple((_normal(match["package"]), match["extra"]) for match in found if match)


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()
