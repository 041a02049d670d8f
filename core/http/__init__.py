"""What requests, answers and errors over HTTP have in common. The nouns' own stand in their folders."""
