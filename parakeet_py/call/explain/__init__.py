"""What a call does, for readers: the report, what became of each line, kernels with estimates, stages, the page."""
