"""Commands that use a development stack while another process runs it."""
