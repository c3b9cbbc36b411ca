"""The base class of a configuration's sections, and the types of their values."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from orchestrator.domain.guarding import HARMLESS_MODULES
from orchestrator.domain.locales import check_locale, check_timezone
from orchestrator.types import Json


def _read_switch(value: Json) -> Json:
    """Convert a boolean back to a switch, because YAML parses a bare ``off`` or ``on`` as a boolean."""
    return {False: "off", True: "on"}[value] if isinstance(value, bool) else value


def _check_pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"is not a valid regular expression: {error}") from error
    return value


def _check_module(value: str) -> str:
    if value not in HARMLESS_MODULES:
        raise ValueError(
            "cannot be allowed; only these standard library modules can: "
            + ", ".join(sorted(HARMLESS_MODULES))
        )
    return value


Switch = Annotated[Literal["off", "on", "auto"], BeforeValidator(_read_switch)]
Pattern = Annotated[str, AfterValidator(_check_pattern)]
Module = Annotated[str, AfterValidator(_check_module)]
TimeZone = Annotated[str, AfterValidator(check_timezone)]
LocaleTag = Annotated[str, AfterValidator(check_locale)]
Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A section of a domain's files: frozen, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
