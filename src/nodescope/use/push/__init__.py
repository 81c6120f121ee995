"""OTLP: what an agent measures, pushed to an OpenTelemetry collector by a process of its own."""
