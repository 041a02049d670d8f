"""The fixtures of all tests of the libraries."""

from tests.sdk.fixtures import driver, open_shop

__all__ = ["driver", "open_shop"]
