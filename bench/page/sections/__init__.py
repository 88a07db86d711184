"""The sections of the page, each in its file."""

from page.sections import batches, comparisons, cost, frontier, machines, memory, networks, publications, roofline
from page.sections import threads, time_by_op, training, types

# In their order on the page.
ALL = (networks, comparisons, types, batches, threads, time_by_op, roofline, frontier, memory, training, cost)
ALL += (machines, publications)
