"""A merchant's terms and his transfers: requests, rules and views."""
