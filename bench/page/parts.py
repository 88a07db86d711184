"""What a section is made of: text, tables and charts. Templates draw them; nothing here is markup."""

import dataclasses


@dataclasses.dataclass
class Cell:
    """A cell that is more than its text."""

    text: str
    number: float = None  # that the column is sorted by
    note: str = ""  # smaller, after the text: an interval
    title: str = ""  # more of it, where a pointer rests
    mark: str = ""  # "ours", "faster", "slower", "tie", "failed": how it looks

    def __str__(self):
        return self.text


@dataclasses.dataclass
class Row:
    cells: list
    command: str = ""  # that measures it again
    mark: str = ""


@dataclasses.dataclass
class Table:
    caption: str
    head: list  # names of columns
    rows: list  # of Row
    numeric: int = 1  # this column and all after it are numbers


@dataclasses.dataclass
class Sentence:
    """A sentence with what measures its numbers again."""

    text: str
    command: str = ""  # of several each is a line

    def __str__(self):
        return self.text


@dataclasses.dataclass
class Chart:
    """A Vega-Lite chart, and its data as a table for whoever cannot see it."""

    name: str  # in the page, unlike any other
    title: str
    says: str  # what it shows, in a sentence
    spec: dict
    table: Table = None


@dataclasses.dataclass
class Section:
    name: str
    title: str
    lead: str = ""
    charts: list = dataclasses.field(default_factory=list)
    tables: list = dataclasses.field(default_factory=list)
    answers: list = dataclasses.field(default_factory=list)  # of Sentence: what it comes to, for the top of the page
    notes: list = dataclasses.field(default_factory=list)  # texts or sentences, as a list
    folded: list = dataclasses.field(default_factory=list)  # tables shown when their line is opened
    folded_title: str = ""
    fill: str = ""  # the command that would fill it; shown where there is nothing
    template: str = "section.html"
    short: str = ""  # its name where there is little room
    data: dict = None  # for its script

    @property
    def empty(self):
        return not (self.charts or self.tables or self.folded or self.data)


@dataclasses.dataclass(frozen=True)
class Head:
    """What a section is called, what it shows, and the command that fills it."""

    name: str
    title: str
    short: str
    lead: str = ""
    command: str = ""

    def section(self, filled, **more):
        """With data the section leads into it; without it names the command."""
        return Section(
            self.name,
            self.title,
            short=self.short,
            lead=self.lead if filled else "",
            fill="" if filled else self.command,
            **more,
        )
