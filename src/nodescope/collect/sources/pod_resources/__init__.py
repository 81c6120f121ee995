"""Which pod was given which device: kubelet's pod-resources API."""
