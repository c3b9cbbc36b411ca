"""Reset the clinic's service before each conversation."""

from urllib.request import Request, urlopen


def reset() -> None:
    with urlopen(Request("http://127.0.0.1:8765/reset", method="POST"), timeout=10):
        pass
