"""The sections of the page, each in its file."""

from page.sections import batches, comparisons, cost, frontier, machines, memory, networks, publications, roofline
from page.sections import threads, time_by_op, training

# In the order in which they stand.
ALL = (networks, comparisons, batches, threads, time_by_op, roofline, frontier, memory, training, cost, machines)
ALL += (publications,)
