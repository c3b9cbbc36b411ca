from collections.abc import Sequence
from pathlib import Path

from lab.evaluation.conversations import read_conversations, read_file
from orchestrator.adapters.domains.yaml_source import write_items
from orchestrator.errors import InvalidInput
from orchestrator.types import JsonObject


def add_cases(cases: Sequence[JsonObject], path: Path) -> int:
    """Append cases to a file of conversations, except those whose names it already has. Return the number appended.

    Raises:
        InvalidInput: the file does not end with conversations.
    """
    known = {one.name for one in read_file(path).conversations} if path.exists() else set[str]()
    new = [case for case in cases if case["name"] not in known]
    if new:
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8").rstrip("\n") + "\n" if path.exists() else "conversations:\n"
        text = before + write_items(new)
        try:
            read_conversations(text, path.name)
        except InvalidInput as error:
            raise InvalidInput(
                f"Can't add to {path}: the file must end with its conversations.", field="into"
            ) from error
        path.write_text(text, encoding="utf-8")
    return len(new)
