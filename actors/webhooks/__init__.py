"""Webhooks: endpoints, deliveries, trials."""
