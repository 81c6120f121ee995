"""Units of systemd: by their cgroups, and over D-Bus where that is asked for."""
