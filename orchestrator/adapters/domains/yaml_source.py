"""Reads YAML as JSON data with the line of every key; says what is wrong with a file instead of raising.

Words mean what YAML 1.2 says: ``no`` and ``12:30`` are text, dates stay text.
"""

import re
from collections.abc import Iterator
from pathlib import Path as FilePath

import yaml
from yaml.composer import Composer

from orchestrator.domain.compile.problems import Path, Problems, SourceFile
from orchestrator.types import Json

MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_NODES = 200_000
"""Aliases within aliases make a small file huge; nodes are counted as they are used."""


class _Loader(Composer, yaml.CSafeLoader):
    """The safe loader with the resolvers of YAML 1.2, and with the parser of LibYAML.

    What it reads is composed by Python, whose limit of nested calls holds for a file that is nested too deeply.
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
"""By tag: the pattern, and the characters that its texts begin with."""

for _kind, (_pattern, _first) in _RESOLVERS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), _first)  # pyright: ignore[reportUnknownMemberType]


def read_text(path: FilePath, name: str, problems: Problems) -> str | None:
    """Text of a file, or None when that is no readable UTF-8 text, which is then reported."""
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
    """Content of a file; that of a broken one is reported and empty."""
    text = read_text(path, name, problems)
    return SourceFile(name) if text is None else parse_yaml(text, name, problems)


def parse_yaml(text: str, name: str, problems: Problems) -> SourceFile:
    """Content of one YAML document."""
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
        problems.add(SourceFile(name), (), f"is no YAML: {' '.join(str(error).split())}")
        return SourceFile(name)
    except RecursionError:
        problems.add(SourceFile(name), (), "is nested too deeply")
        return SourceFile(name)
    finally:
        loader.dispose()
    file = SourceFile(name, body, lines)
    for place, line in twice:
        problems.add(SourceFile(name, lines={place: line}), place, "is here a second time")
    return file


def _mistake(name: str, error: yaml.MarkedYAMLError) -> tuple[SourceFile, Path, str]:
    mark = error.problem_mark or error.context_mark
    path: Path = (f"line {mark.line + 1}, column {mark.column + 1}",) if mark else ()
    return SourceFile(name), path, f"is no YAML: {error.problem or error.context}"


def _walk(root: yaml.Node) -> tuple[dict[Path, int], list[tuple[Path, int]]]:
    """Lines of every key and item, and the keys that stand twice in one mapping."""
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
