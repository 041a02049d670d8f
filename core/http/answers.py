"""Declares what the API answers: one type for each object, from which its documentation is made.

Used by api.routes, and by the tests of views. Source: API reference, "Resources and their fields".
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Answer(Struct, forbid_unknown_fields=True, kw_only=True):
    """An object of the API as a view renders it."""


class Health(Answer, kw_only=True):
    """How the process or the gateway is."""

    status: Annotated[Literal["ok"], Meta(description="Always ok.")]


class Readiness(Answer, kw_only=True):
    """How the gateway is, and what an operator should look at."""

    status: Annotated[Literal["ok"], Meta(description="Always ok.")]
    attention: Annotated[list[str], Meta(description="What does not keep this process from serving.")]
    audit_passed_at: Annotated[
        str | None, Meta(description="When the books were last found right, as ISO 8601 in UTC; null: not yet.")
    ]
