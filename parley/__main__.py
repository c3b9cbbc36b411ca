"""The command ``parley`` and ``python -m parley``: runs the command line, or says that its extra is not installed."""

from __future__ import annotations

import sys

from orchestrator.extras import extra_of, needs_extra


def main() -> None:
    """Run the command line and end the process."""
    try:
        from parley.main import main as run  # noqa: PLC0415 - most of what it imports are extras
    except ModuleNotFoundError as error:
        if error.name is None or extra_of(error.name) is None:
            raise
        sys.exit(f"parley: {needs_extra('cli')}")
    run()


if __name__ == "__main__":
    main()
