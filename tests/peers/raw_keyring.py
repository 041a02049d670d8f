"""A keyring of one key, as a test's rich account on a development chain has it."""

from chains.evm.spends.library import hash_signature
from chains.spending import KeyRef


class RawKeyring:
    """Signs whatever it is asked for with its only key."""

    def __init__(self, private_key: str) -> None:
        self._private_key = private_key

    def sign(self, key: KeyRef, message: bytes) -> bytes:
        del key
        return hash_signature(message, self._private_key)

    def public(self, key: KeyRef) -> bytes:
        raise NotImplementedError(key)
