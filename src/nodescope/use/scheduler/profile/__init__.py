"""What a pod will use is what its workload used: profiles, the coming hours of a node, and what a placement costs."""
