"""Client libraries for Python and Node, made from the API's description."""
