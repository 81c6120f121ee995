"""Who tells others what the watcher found: Events of Kubernetes, and alerts for Alertmanager."""
