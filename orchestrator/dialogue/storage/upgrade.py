"""Upgrade stored states to the current schema version, one version at a time (ST-1).

Each step converts a document to the next version. Released steps never change.
"""

from collections.abc import Callable, Mapping

from orchestrator.dialogue.records import LabelSource, add_source
from orchestrator.dialogue.storage.serialization import dump, load
from orchestrator.errors import SchemaTooNew
from orchestrator.types import JsonObject

SCHEMA_VERSION = 1

UPGRADES: Mapping[int, Callable[[JsonObject], JsonObject]] = {}


def upgrade(body: JsonObject) -> JsonObject:
    """Convert a document to the current version. Raises SchemaTooNew if a later release wrote it."""
    version = body["schema_version"]
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(version, SCHEMA_VERSION)
    for step in range(version, SCHEMA_VERSION):
        body = UPGRADES[step](body)
    return body


def keep_labels(wanted: JsonObject, present: JsonObject) -> JsonObject:
    """Return the state `wanted` plus the labels from `present`, because the scratchpad keeps the labeled content."""
    labels = [load(LabelSource, source) for source in wanted.get("labels", ())]
    for source in present.get("labels", ()):
        add_source(labels, load(LabelSource, source))
    return {**wanted, "labels": [dump(source) for source in labels]} if labels else wanted
