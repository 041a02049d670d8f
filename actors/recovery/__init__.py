"""Recovery from lost commits: unexplained departures are found, read and adopted until signing may resume."""
