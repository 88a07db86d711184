"""The page that bench/report makes of result files; docs/report.md is for its users."""
