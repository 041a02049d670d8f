"""The bitcoin family: blocks read raw and proved, coins spent by their keys."""
