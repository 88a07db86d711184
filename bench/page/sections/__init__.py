"""The sections of the page, each in its file, in the order in which they stand."""

from page.sections import (
    batches,
    cost,
    frontier,
    kinds,
    machines,
    memory,
    networks,
    roofline,
    tables,
    threads,
    training,
    versions,
)

ALL = (machines, networks, batches, threads, kinds, roofline, frontier, versions, memory, cost, training, tables)
