"""The table that actors under test write to. Every database that is emptied between tests has it, since one that a
test makes a table in has to be replaced.
"""

from __future__ import annotations

from typing import Final

EFFECTS: Final = "CREATE TABLE testing.effects (id bigint GENERATED ALWAYS AS IDENTITY, name text NOT NULL)"
