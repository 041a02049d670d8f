"""The queue: broker, messages, calls and doorbells. The only folder that knows Redis."""
