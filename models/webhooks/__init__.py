"""The outbox of events, and their deliveries."""
