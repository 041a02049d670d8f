"""Describes the API in OpenAPI 3.1: `document` the whole, `refusals` errors, `schemas` bodies, `events` webhooks."""
