"""One module per command or group of commands, each with a Typer `app`. See `parley.main`."""
