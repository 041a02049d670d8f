"""Recovery from lost commits: departures without a row are found, read and adopted until signing may resume."""
