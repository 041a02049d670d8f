"""From bytes to an endpoint and back: the worker, middleware, signatures, bodies, errors."""
