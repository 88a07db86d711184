"""Compares two outputs of network_values: compare.py OURS OTHER BOUND. Fails if two numbers of a tensor
differ by more than BOUND times the tensor's largest number."""

import sys


def tensors(path):
    """The numbers of each tensor, by the tensor's name."""
    found = {}
    with open(path) as lines:
        for line in lines:
            name, number = line.rsplit(" ", 1)
            found.setdefault(name, []).append(float(number))
    return found


def main(ours, other, bound):
    ours, other = tensors(ours), tensors(other)
    if ours.keys() != other.keys() or not ours:
        raise SystemExit("the files do not have the same tensors")
    worst = {}
    for name, numbers in ours.items():
        if len(numbers) != len(other[name]):
            raise SystemExit(f"{name} has {len(numbers)} numbers in OURS, {len(other[name])} in OTHER")
        largest = max(map(abs, numbers)) or 1
        worst[name] = max(abs(a - b) for a, b in zip(numbers, other[name])) / largest
    name = max(worst, key=worst.get)
    print(f"{len(worst)} tensors, {sum(map(len, ours.values()))} numbers; the largest difference is {worst[name]:.2g} of "
          f"the largest number, in {name}")
    if not worst[name] <= float(bound):
        raise SystemExit(f"above {bound}")


if __name__ == "__main__":
    main(*sys.argv[1:])
