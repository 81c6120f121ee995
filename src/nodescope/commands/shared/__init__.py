"""What several commands share: their options and the processes that they start."""
