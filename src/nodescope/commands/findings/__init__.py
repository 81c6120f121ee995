"""Commands about what the watcher found."""
