"""Tables, their invariants and their reads. PostgreSQL is the truth; an event without a row did not happen."""
