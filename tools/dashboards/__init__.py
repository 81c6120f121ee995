"""The Grafana dashboards, one module each; `tools/generate_dashboards.py` writes them."""
