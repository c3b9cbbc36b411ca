"""`python -m workers` without settings."""

import os
import subprocess
import sys

from tests.cases import for_each


@for_each(("app", "command"), [("workers.app", "worker"), ("workers.flower_app", "flower")])
def test_missing_settings_are_reported_on_one_line(app: str, command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}

    ended = subprocess.run(
        [sys.executable, "-m", "workers", "-A", app, command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"parley {command}: DATABASE_URL: is not set; set it, or DATABASE_URL_FILE")
    assert ended.returncode == 2
