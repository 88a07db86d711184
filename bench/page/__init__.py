"""The page that bench/report makes of result files: who reads, who says what is in a section, who draws. docs/report.md is
for its users."""
