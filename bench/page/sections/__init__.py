"""The sections of the page. Each is a module."""

from page.sections import batches, comparisons, cost, frontier, machines, memory, networks, publications, roofline
from page.sections import threads, time_by_op, training, types

# In the order of the page.
ALL = (networks, comparisons, types, batches, threads, time_by_op, roofline, frontier, memory, training, cost)
ALL += (machines, publications)
