"""What `compare` and `versions` print."""

import collections

HEADER = (f"{'network':18}{'pass':14}{'peer':42}{'lamina ms':>11}{'peer ms':>11}{'layout':>8}{'ratio':>8}"
          f"{'95 % interval':>18}  disturbed")

MEMORY_HEADER = (f"{'peak memory of':18}{'mode':14}{'peer':42}{'lamina MiB':>11}{'planned':>11}{'peer MiB':>11}"
                 f"{'layout':>8}{'ratio':>8}")

DEVICE_HEADER = (f"{'network':18}{'pass':11}{'lamina':34}{'lamina ms':>11}{'peer ms':>11}  {'fastest alike':48}"
                 f"{'ratio':>7}{'95 % interval':>18}  disturbed")

DEVICE_MEMORY_HEADER = (f"{'memory of':18}{'mode':11}{'lamina':34}{'plan MiB':>11}{'peer MiB':>11}  "
                        f"{'lowest alike':48}{'ratio':>7}")


def interval(line):
    return f"{line['low']:10.3f} - {line['high']:.3f}  {line['disturbed']}/{line['samples']}"


def show(line):
    peer = line["peer"] if line["peer"] == line["fastest_peer"] else f"{line['peer']}: {line['fastest_peer']}"
    print(f"{line['net']:18}{line['pass']:14}{peer:42}{line['ms']:11.2f}{line['peer_ms']:11.2f}"
          f"{line['peer_layout']:>8}{line['ratio']:8.3f}{interval(line)}", flush=True)


def ours(line):
    return f"{line['lamina'].removeprefix('lamina/')} {line['layout']}"


def theirs(line, peer):
    """A peer's variant as its subject is called, and whether it is the best of several PyTorchs."""
    return f"{peer}/{line['precision']}/{line['peer_variant']} {line['peer_layout']}"


def show_on_device(line):
    of = "" if line["peer"] == line["fastest_peer"] else " (of all)"
    print(f"{line['net']:18}{line['pass']:11}{ours(line):34}{line['ms']:11.3f}{line['peer_ms']:11.3f}  "
          f"{theirs(line, line['fastest_peer']) + of:48}{line['ratio']:7.3f}{interval(line)}", flush=True)


def show_memory(lines):
    print("\n" + MEMORY_HEADER)
    for line in lines:
        print(f"{line['net']:18}{line['mode']:14}{line['peer']:42}{line['peak_MiB']:11.1f}{line['plan_MiB']:11.1f}"
              f"{line['peer_peak_MiB']:11.1f}{line['peer_layout']:>8}{line['ratio']:8.3f}")


def show_memory_on_device(lines):
    print("\n" + DEVICE_MEMORY_HEADER)
    for line in lines:
        print(f"{line['net']:18}{line['mode']:11}{ours(line):34}{line['plan_MiB']:11.1f}{line['peer_peak_MiB']:11.1f}  "
              f"{theirs(line, line['lowest_peer']):48}{line['ratio']:7.3f}")


def show_failure(line):
    print(f"{line['net']:18}{'left out' if line['refused'] else 'FAILED'}: {line['name']} {line['layout']} "
          f"({line['stage']}): {line['reason']}", flush=True)


def show_means(means, on_device):
    for (_, name, peer, what), (mean, networks) in means.items():
        if on_device:
            print(f"{'geometric mean':18}{what:11}{name.removeprefix('lamina/'):34}{'':22}  "
                  f"{f'against {peer}, {networks} networks':48}{mean:7.3f}")
        else:
            print(f"{'geometric mean':18}{what:14}{peer:42}{'':30}{mean:8.3f}")


def show_versions(first, other, found):
    """The rows of a version beside those of the first. Layers only where they differ: a thousand equal ones hide the one
    that is not."""
    head = ("row", "first ms", "ms", "ratio", "95 % interval", "verdict", "regression", "evidence")
    lines = [head]
    for one in found:
        if one.is_layer and not one.regression and (one.verdict in ("equal", "fails in both") or
                                                 one.verdict == "undecided" and one.seconds > 0):
            continue
        timed = (f"{1e3 * one.first_seconds:.3f}", f"{1e3 * one.seconds:.3f}", f"{one.ratio:.3f}",
                 f"{one.low:.3f} to {one.high:.3f}") if one.seconds > 0 else ("",) * 4
        lines.append((one.name, *timed, one.verdict, one.regression, one.evidence))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    print(f"{other}\nagainst {first}, the first:\n")
    for line in lines:
        print("  ".join(text.rjust(width) if 0 < i < 5 else text.ljust(width)
                        for i, (text, width) in enumerate(zip(line, widths))).rstrip())
    counts = collections.Counter(one.verdict for one in found)
    print(f"\n{len(found)} rows: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())),
          flush=True)


def show_compiling(opened):
    """The seconds that PyTorch's compiled variants took to be compiled."""
    compiled = [one for one in opened if "compile_seconds" in one]
    if compiled:
        print("\nSeconds to compile, no part of any pass:")
    for one in compiled:
        print(f"{one['net']:18}{one['mode']:11}{one['name']} {one['layout']}: {one['compile_seconds']:.1f}")
