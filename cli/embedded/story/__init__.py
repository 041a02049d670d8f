"""What a development chain holds, and the story that the demonstration tells."""
