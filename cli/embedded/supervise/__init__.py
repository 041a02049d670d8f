"""Processes and what keeps them: started, watched, restarted, ended."""
