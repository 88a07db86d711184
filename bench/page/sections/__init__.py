"""The sections of the page, each in its file, in the order in which they stand."""

from page.sections import machines, networks

ALL = (machines, networks)
