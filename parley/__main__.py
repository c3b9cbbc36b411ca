from __future__ import annotations

import sys

from orchestrator.extras import extra_of, needs_extra


def main() -> None:
    """Run the command-line interface. If an optional dependency is missing, print the name of its extra and exit."""
    try:
        from parley.main import main as run  # noqa: PLC0415 - most of its imports are extras
    except ModuleNotFoundError as error:
        if error.name is None or (extra := extra_of(error.name)) is None:
            raise
        sys.exit(f"parley: {needs_extra(extra)}")
    run()


if __name__ == "__main__":
    main()
