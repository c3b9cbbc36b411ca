"""Browser tests. As a package, they end the stack and the browser with the last test."""
