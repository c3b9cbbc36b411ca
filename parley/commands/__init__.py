"""One file per command or group of commands, each with its `app`; `parley.main` loads the one that is called."""
