"""Rules of payment links."""
