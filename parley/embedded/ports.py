"""Free ports on the loopback interface."""

import socket


def free_port(host: str = "127.0.0.1") -> int:
    """Find a TCP port that nothing listens on right now."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        return listener.getsockname()[1]


def is_free(host: str, port: int) -> bool:
    """Check that a server could listen on this port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            return False
    return True
