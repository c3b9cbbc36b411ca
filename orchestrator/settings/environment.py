"""Read environment variables, or files that replace them.

For example, ``DATABASE_URL_FILE`` names a file that contains the value of ``DATABASE_URL``.
"""

import os
import re
from pathlib import Path

from orchestrator.errors import ConfigurationError, Problem
from orchestrator.redaction import password_of

# Variables that `read_environment` can read from files.
_SECRETS = (
    "DATABASE_URL",
    "REDIS_URL",
    "PARLEY_BROKER_URL",
    "OPENAI_API_KEY",
    "PARLEY_API_KEY",
    "FLOWER_BASIC_AUTH",
)
# Names of variables that contain secrets, including tools' secrets.
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD)$")


def read_variable(name: str) -> str | None:
    """Return a variable's value, or the content of the file named by ``<name>_FILE``.

    Raises ConfigurationError if the file cannot be read.
    """
    value = os.environ.get(name)
    return value if value is not None else read_secret_file(name)


def read_environment() -> dict[str, str]:
    """Return the environment, including secrets from files."""
    named = [name.removesuffix("_FILE") for name in os.environ if name.endswith("_FILE")]
    secrets = {name: read_variable(name) for name in _SECRETS if name in named}
    return {**os.environ, **{name: value for name, value in secrets.items() if value}}


def read_secret_file(name: str) -> str | None:
    place = os.environ.get(f"{name}_FILE")
    if not place:
        return None
    try:
        return Path(place).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([Problem(f"{name}_FILE", f"cannot be read: {error}")]) from error


def environment_secrets() -> frozenset[str]:
    """Return the secrets in the environment, including those in files if all files can be read."""
    try:
        environment = read_environment()
    except ConfigurationError:
        # The code that reads this setting reports the unreadable file.
        environment = dict(os.environ)
    found = {value for name, value in environment.items() if _SECRET_NAME.search(name)}
    found |= {password for value in environment.values() for password in password_of(value)}
    for user in environment.get("FLOWER_BASIC_AUTH", "").split(","):
        found.add(user.partition(":")[2])
    for header in environment.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(","):
        found.add(header.partition("=")[2].strip())
    return frozenset(found)
