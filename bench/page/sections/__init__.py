"""The sections of the page, each in its file, in the order in which they stand."""

from page.sections import (
    batches,
    comparisons,
    cost,
    frontier,
    machines,
    memory,
    networks,
    publications,
    roofline,
    threads,
    time_by_op,
    training,
)

ALL = (
    machines,
    networks,
    batches,
    threads,
    time_by_op,
    roofline,
    frontier,
    comparisons,
    memory,
    cost,
    training,
    publications,
)
