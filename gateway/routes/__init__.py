"""The API's calls, one file per resource."""
