"""Where the gateway may connect to, who may connect from where, and mail."""
