"""The checks that `parley doctor` runs on a deployment. They yield findings."""
