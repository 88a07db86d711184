"""bench/report: result files as one HTML page."""
