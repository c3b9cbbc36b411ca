import secrets
import socket
from typing import Final

CHOSEN: Final = range(20_000, 32_000)
"""Ports that no kernel uses by default for outgoing connections, which could take a port before its server starts."""


def free_port() -> int:
    while not is_free("127.0.0.1", port := secrets.choice(CHOSEN)):
        pass
    return port


def is_free(host: str, port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            return False
    return True
