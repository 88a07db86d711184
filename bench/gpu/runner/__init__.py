"""The parts of `run-all`. They need Python 3.8 or later and its standard library, nothing else."""
