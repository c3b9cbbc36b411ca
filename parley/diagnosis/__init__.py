"""What `parley doctor` checks: each module examines one part of a deployment and yields findings."""
