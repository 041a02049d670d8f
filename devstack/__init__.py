"""Real servers and chains for one machine: PostgreSQL, Valkey, anvil. Used by `sluice dev`, `sluice demo`, tests."""
