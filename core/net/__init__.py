"""What the HTTP edge reads and answers, where the gateway may connect to, who may connect from where, and mail."""
