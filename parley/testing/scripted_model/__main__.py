"""Run the scripted model: `python -m parley.testing.scripted_model script.yaml`."""

import argparse
import contextlib
import sys
from pathlib import Path

from orchestrator.errors import ConfigurationError
from parley.testing.scripted_model import ScriptedModel, load_script


def main() -> int:
    """Print the base URL and serve until interrupted. Return 2 if the script is invalid."""
    parser = argparse.ArgumentParser(prog="python -m parley.testing.scripted_model")
    parser.add_argument("script", type=Path, help="YAML file with `default` and `rules`")
    parser.add_argument(
        "--port", type=int, default=0, help="port to listen on; 0 (the default) selects a free port"
    )
    arguments = parser.parse_args()
    try:
        script = load_script(arguments.script)
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with ScriptedModel(script, port=arguments.port) as model, contextlib.suppress(KeyboardInterrupt):
        sys.stdout.write(f"{model.base_url}\n")
        sys.stdout.flush()
        model.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
