"""Messages from senders: envelopes are validated, and contents are never displayed."""
