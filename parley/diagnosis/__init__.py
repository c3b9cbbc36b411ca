"""The checks of `parley doctor`: each module examines one part of a deployment and yields findings."""
