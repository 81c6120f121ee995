"""What all GPU sources share: the family of metrics, the owner of a process, the vendor's tools."""
