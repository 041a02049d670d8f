"""The servers of a stack: PostgreSQL, Valkey and the chains' nodes."""
