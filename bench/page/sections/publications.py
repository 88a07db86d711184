"""The section of published tables: all tables of bench/published, unchanged."""

from page import published
from page.parts import row, section, table


def make(model):
    tables = []
    for name, title in published.TITLES.items():
        lines = published.lines(name)
        rows = [row([text or "" for text in line.values()]) for line in lines]
        tables.append(table(title, list(lines[0]), rows, 99))
    lead = "All tables of bench/published. The section of networks shows the times, too."
    folded_title = "Show the published tables"
    return section("published", "Published tables", "Published", lead, folded=tables, folded_title=folded_title)
