"""A process's resident memory, as Linux counts it."""


class Unsupported(Exception):
    """This system does not report a process's peak of memory; the message says why."""


def status_bytes(pid, field):
    """VmRSS: resident now. VmHWM: at most, since the process began or since reset_peak()."""
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
    except OSError as error:
        raise Unsupported(f"this system does not report a process's resident memory: {error}") from error
    raise Unsupported(f"this system does not report a process's resident memory: /proc has no {field}")


def reset_peak(pid):
    """Makes the present size the peak."""
    try:
        with open(f"/proc/{pid}/clear_refs", "w") as file:
            file.write("5")
    except OSError as error:
        raise Unsupported(f"this system cannot reset a process's peak of resident memory: {error}") from error


def growth_of(pid, work):
    """By how much a process grew at most while it worked, in bytes."""
    reset_peak(pid)
    before = status_bytes(pid, "VmRSS")
    work()
    return status_bytes(pid, "VmHWM") - before
