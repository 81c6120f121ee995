"""The watcher: looks at the newest samples of a node and tells what is wrong, before somebody asks."""
