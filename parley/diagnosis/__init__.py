"""The checks of `parley doctor`. Each module checks one part of a deployment and yields findings."""
