"""A merchant's side of the API: a client that signs, and a receiver of webhooks."""
