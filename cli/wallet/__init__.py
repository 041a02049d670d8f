"""Makes, checks and reads the gateway's root secret."""
