"""Holds the keys that a signer process has opened. Shared by the modules that sign and that make addresses."""

import functools

from actors.context import context
from chains.keys import Keys, load_keys


@functools.cache
def keys() -> Keys:
    """Return the process's keys, opened at the first use. Raises KeystoreError."""
    return load_keys(context().settings)
