"""The checks of `parley doctor`. Each module examines one part of a deployment and yields findings."""
