"""What `parley doctor` looks at: each module examines one part of a deployment and yields findings."""
