"""Generated series of every class, each with what is true of it."""
