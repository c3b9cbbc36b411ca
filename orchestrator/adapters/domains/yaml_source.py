"""Parse YAML files to JSON data with the line number of every key. Report problems instead of raising them.

Scalars follow YAML 1.2: ``no``, ``12:30`` and dates are strings.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath

import yaml
from yaml.composer import Composer

from orchestrator.domain.compile.problems import Path, Problems, SourceFile
from orchestrator.types import Json

MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_NODES = 200_000
"""Maximum number of nodes. An alias counts at each use, because nested aliases can make a small file huge."""


class _Loader(Composer, yaml.CSafeLoader):
    """The safe loader with YAML 1.2 resolvers and LibYAML's parser.

    Composing happens in Python, so that its recursion limit rejects files that are nested too deeply.
    """

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


_RESOLVERS: dict[str, tuple[str, list[str]]] = {
    "bool": (r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    "int": (r"[-+]?[0-9]+|0x[0-9a-fA-F]+", [*"-+0123456789"]),
    "float": (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
    "null": (r"~|null|Null|NULL|", [*"~nN", ""]),
    "merge": (r"<<", ["<"]),
}
"""Patterns and first characters of scalars, by tag."""

for _kind, (_pattern, _first) in _RESOLVERS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), _first)  # pyright: ignore[reportUnknownMemberType]


def read_text(path: FilePath, name: str, problems: Problems) -> str | None:
    """Return a file's text.

    If the file is unreadable, too large or not UTF-8, report the problem and return None.
    """
    file = SourceFile(name)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            problems.add(file, (), f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
            return None
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.add(file, (), f"is not UTF-8 text (byte {error.start + 1})")
    except OSError as error:
        problems.add(file, (), f"cannot be read: {error.strerror}")
    return None


def read_yaml(path: FilePath, name: str, problems: Problems) -> SourceFile:
    """Parse a YAML file. If the file is unreadable or invalid, report the problem and return an empty source."""
    text = read_text(path, name, problems)
    return SourceFile(name) if text is None else parse_yaml(text, name, problems)


def parse_yaml(text: str, name: str, problems: Problems) -> SourceFile:
    """Parse a YAML document. If the document is invalid, report the problem and return an empty source."""
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return SourceFile(name)
        lines, twice = _walk(root)
        body: Json = loader.construct_document(root)  # pyright: ignore[reportUnknownMemberType]
    except yaml.MarkedYAMLError as error:
        problems.add(*_mistake(name, error))
        return SourceFile(name)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        problems.add(SourceFile(name), (), f"is not valid YAML: {' '.join(str(error).split())}")
        return SourceFile(name)
    except RecursionError:
        problems.add(SourceFile(name), (), "is nested too deeply")
        return SourceFile(name)
    finally:
        loader.dispose()
    file = SourceFile(name, body, lines)
    for place, line in twice:
        problems.add(SourceFile(name, lines={place: line}), place, "is a duplicate key")
    return file


def _mistake(name: str, error: yaml.MarkedYAMLError) -> tuple[SourceFile, Path, str]:
    mark = error.problem_mark or error.context_mark
    path: Path = (f"line {mark.line + 1}, column {mark.column + 1}",) if mark else ()
    return SourceFile(name), path, f"is not valid YAML: {error.problem or error.context}"


def _walk(root: yaml.Node) -> tuple[dict[Path, int], list[tuple[Path, int]]]:
    """Return the line number of each key and item by path, and the duplicate keys with their line numbers.

    Raises RecursionError if the document is too large or nested too deeply.
    """
    lines: dict[Path, int] = {}
    twice: list[tuple[Path, int]] = []
    pending: list[tuple[Path, yaml.Node]] = [((), root)]
    while pending:
        path, node = pending.pop()
        seen: set[str] = set()
        for step, line, value in _children(node):
            place = (*path, step)
            if isinstance(step, str) and step in seen and step != "<<":
                twice.append((place, line))
            seen.add(str(step))
            lines.setdefault(place, line)
            pending.append((place, value))
        if len(lines) > MAX_NODES or len(path) > 200:
            raise RecursionError
    return lines, twice


def _children(node: yaml.Node) -> Iterator[tuple[str | int, int, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield str(key.value), key.start_mark.line + 1, value
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield index, value.start_mark.line + 1, value


def write_items(items: Sequence[Mapping[str, object]]) -> str:
    """Return the items as an indented YAML list."""
    text = yaml.safe_dump([dict(item) for item in items], allow_unicode=True, sort_keys=False, width=110)
    return "".join(f"  {line}\n" for line in text.splitlines())
