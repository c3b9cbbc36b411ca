"""What senders put into the queues: envelopes are judged, and nothing of their contents is shown."""
