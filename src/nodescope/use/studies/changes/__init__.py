"""Changes that the search for pieces does not see."""
