"""What several tools share: finding a container, its restarts, texts about time."""
