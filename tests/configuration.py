"""The shared defaults as a configuration, for tests of parts that need a configuration but no domain."""

from __future__ import annotations

import yaml

from orchestrator.adapters.domains.folder import DEFAULTS
from orchestrator.domain.configuration import DomainConfig, merge_sections
from orchestrator.types import JsonObject


def default_config(overrides: JsonObject | None = None) -> DomainConfig:
    """Return the defaults, overridden by these sections."""
    defaults = yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))
    return DomainConfig.model_validate(merge_sections(defaults, overrides or {}))
