"""Charts in text: bars for bars and histograms, a line of blocks for lines. Others are named, not drawn."""

import re
from typing import Any

from parley.terminal.words import clean

MOST_BARS = 20
WIDTH = 40
LINE_WIDTH = 60
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def draw(spec: dict[str, Any]) -> list[str] | None:
    """The lines of a chart; None when it is not one of a measure against something else."""
    mark = spec["mark"]["type"] if isinstance(spec.get("mark"), dict) else spec.get("mark")
    encoding = spec.get("encoding") or {}
    x, y = _field(encoding, "x"), _field(encoding, "y")
    rows = (spec.get("data") or {}).get("values") or []
    if x is None or y is None:
        return None
    points = [(clean(row.get(x)), float(row[y])) for row in rows if isinstance(row.get(y), (int, float))]
    if not points:
        return None
    if mark == "bar":
        return _bars(points)
    return _line(points) if mark in {"line", "area"} else None


def _field(encoding: dict[str, Any], channel: str) -> str | None:
    """The name behind a channel, without the backslashes that keep it from being a path."""
    field = (encoding.get(channel) or {}).get("field")
    return re.sub(r"\\(.)", r"\1", field) if isinstance(field, str) else None


def _bars(points: list[tuple[str, float]]) -> list[str]:
    shown = points[:MOST_BARS]
    most = max(abs(value) for _, value in shown) or 1.0
    width = max(len(name) for name, _ in shown)
    lines = [f"{name:<{width}} {bar(value / most)} {value:g}" for name, value in shown]
    return [*lines, f"… and {len(points) - MOST_BARS} more"] if len(points) > MOST_BARS else lines


def bar(share: float) -> str:
    """Draw a share of the width."""
    eighths = round(max(0.0, share) * WIDTH * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _line(points: list[tuple[str, float]]) -> list[str]:
    values = [value for _, value in points]
    step = max(1.0, len(values) / LINE_WIDTH)
    count = min(len(values), LINE_WIDTH)
    sampled = [values[min(len(values) - 1, int(place * step))] for place in range(count)]
    low, high = min(sampled), max(sampled)
    spread = (high - low) or 1.0
    drawn = "".join(_LEVELS[round((value - low) / spread * (len(_LEVELS) - 1))] for value in sampled)
    return [drawn, f"{points[0][0]} … {points[-1][0]}, from {min(values):g} to {max(values):g}"]
