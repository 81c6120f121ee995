"""The one small Kubernetes client: who we are, requests, lists and watches."""
