"""From older forms of the stored state to the present one, a version at a time (ST-1).

A step takes the document as that version wrote it and returns the next version's; none is ever
changed once released.
"""

from collections.abc import Callable, Mapping

from orchestrator.dialogue.records import LabelSource, add_source
from orchestrator.dialogue.storage.serialization import dump, load
from orchestrator.errors import SchemaTooNew
from orchestrator.types import JsonObject

SCHEMA_VERSION = 1

UPGRADES: Mapping[int, Callable[[JsonObject], JsonObject]] = {}


def upgrade(body: JsonObject) -> JsonObject:
    """Convert a document to the current version. Raises SchemaTooNew for one of a later release."""
    version = body["schema_version"]
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(version, SCHEMA_VERSION)
    for step in range(version, SCHEMA_VERSION):
        body = UPGRADES[step](body)
    return body


def keep_labels(wanted: JsonObject, present: JsonObject) -> JsonObject:
    """Copy the present state's labels to an earlier one: the content is still in the scratchpad."""
    labels = [load(LabelSource, source) for source in wanted.get("labels", ())]
    for source in present.get("labels", ()):
        add_source(labels, load(LabelSource, source))
    return {**wanted, "labels": [dump(source) for source in labels]} if labels else wanted
