"""Train in a short-lived process, because scikit-learn's memory is only freed when its process exits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import orjson

from orchestrator.nlu.system1.linear import Features, LinearModel, pack, unpack
from orchestrator.nlu.system1.training.learning import fit
from orchestrator.telemetry import get_logger

_KEY = "fitted"
_log = get_logger(__name__)


def fit_in_process(rows: Sequence[Features], labels: Sequence[str]) -> LinearModel:
    """Return the same model as `fit`. If the process fails, fit the model here."""
    command, given = (sys.executable, "-m", __name__), orjson.dumps([rows, labels])
    try:
        fitted = subprocess.run(command, input=given, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        _log.warning("Could not train in a separate process.", error=error)
        return fit(rows, labels)
    return unpack(fitted, _KEY)


def main() -> None:
    rows, labels = orjson.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pack(fit(rows, labels), _KEY))


if __name__ == "__main__":
    main()
