"""Holds the root of the error tree, its register, and the refusal without a code. Answered by api in one place."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

_register: Final[dict[str, type["DomainError"]]] = {}

ERRORS: Final[Mapping[str, type["DomainError"]]] = MappingProxyType(_register)
"""Every domain error by its code."""

SERVER_ERROR: Final = 500


class DomainError(Exception):
    """A refusal with a code of the specification's error table.

    A subclass gives its code and HTTP status in its class statement; its docstring is the default message, so that
    the two cannot differ. `retryable`: the same request may succeed later.
    """

    code: ClassVar[str]
    status: ClassVar[int]
    retryable: ClassVar[bool]
    text: ClassVar[str]
    retry_after_s: ClassVar[int | None]

    def __init_subclass__(
        cls,
        *,
        code: str,
        status: int,
        retryable: bool = False,
        retry_after_s: int | None = None,
    ) -> None:
        """Enter the class in the register; a code without a message, or used twice, stops the import."""
        super().__init_subclass__()
        if not cls.__doc__:
            raise TypeError(f"{code} has no docstring, which is its message")
        if code in _register:
            raise TypeError(f"{code} is already the code of {_register[code].__name__}")
        cls.code = code
        cls.status = status
        # The specification calls every 5xx temporary; a 4xx is so only where it says so.
        cls.retryable = retryable or status >= SERVER_ERROR
        cls.retry_after_s = retry_after_s
        cls.text = cls.__doc__
        _register[code] = cls

    def __init__(self, message: str | None = None) -> None:
        """Carry `message`, or the class's own text; it goes to the caller, so it holds no secret."""
        self.message = message or self.text
        super().__init__(self.message)


class TooManyRequestsError(Exception):
    """A limit is used up. It has no code: HTTP 429 has a shape of its own.

    Raised by the API's limits, and by actors for what they count in PostgreSQL.
    """

    def __init__(self, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"Too many requests; try again in {retry_after_s} s.")
