"""Messages about missing extras, based on the metadata of the package `parley-runtime`."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

# Modules whose names differ from their packages' names.
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
    top = module.split(".", maxsplit=1)[0]
    wanted = _normal(_PACKAGES.get(top, top))
    return next((extra for package, extra in _declared() if package == wanted), None)


def is_missing(extra: str) -> bool:
    return any(not _is_installed(package) for package, named in _declared() if named == extra)


def needs_extra(extra: str) -> str:
    return f"The extra `{extra}` is not installed: pip install 'parley-runtime[{extra}]'"


def explain_missing(error: BaseException) -> str | None:
    """Return a message with the install command if a missing extra caused the error; otherwise, return None."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError) and cause.name and (extra := extra_of(cause.name)):
            return needs_extra(extra)
        cause = cause.__cause__ or cause.__context__
    return None


@cache
def _declared() -> tuple[tuple[str, str], ...]:
    try:
        declared = requires("parley-runtime") or []
    except PackageNotFoundError:
        return ()
    found = map(_REQUIREMENT.match, declared)
    return tuple((_normal(match["package"]), match["extra"]) for match in found if match)


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()
