"""What `run-all` is made of. Python 3.8 or later and its standard library, nothing else."""
