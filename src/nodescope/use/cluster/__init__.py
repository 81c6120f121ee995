"""Many nodes on one page: cells gathered from all of them, kept within bounds, ranked by harm, compared."""
