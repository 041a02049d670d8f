"""The documentation at /docs: guides from docs/, and a reference from the API's description."""
