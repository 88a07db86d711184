"""The race over single convolutions against oneDNN's primitives: what `compare --layers` does."""

import os
import sys

import race
import rows
import workers

DIRECT = {"any", "nchw"}  # oneDNN's variants by its direct algorithm
SLOWER, FASTER = 1.1, 1.5  # beyond these factors a layer counts as slower, or as faster, than the peer's
HEADER = (f"{'layer':34}{'x':>17}{'window':>18}{'pass':>17}{'times':>6}{'lamina ms':>11}{'onednn ms':>11}"
          f"{'variant':>10}{'ratio':>8}{'95 % interval':>18}  disturbed")


class Layer:
    """A convolution and where the networks have it: `counts` maps a network to how often each pass of it runs."""

    def __init__(self, network, node, conv):
        self.network, self.node, self.conv, self.counts = network, node, conv, {}

    @property
    def name(self):
        return f"{self.network}/{self.node}"

    def add(self, net, wants_dx):
        counts = self.counts.setdefault(net, dict.fromkeys(rows.LAYER_PASSES, 0))
        for what in rows.LAYER_PASSES:
            counts[what] += wants_dx or what != "backward_data"

    def texts(self):
        """Its input and its window, for the table."""
        n, c, h, w, k, r, s, *rest = map(int, self.conv.split())
        window = f"{r}x{s}" + "".join(
            f" {letter}{rows_}" + (f"x{columns}" if rows_ != columns else "")
            for letter, rows_, columns, usual in (("/", *rest[:2], 1), ("p", *rest[2:4], 0), ("d", *rest[4:6], 1))
            if (rows_, columns) != (usual, usual))
        return f"{c}x{h}x{w} > {k}", window + (f" g{rest[6]}" if rest[6] > 1 else "")


def distinct(listings):
    """Each convolution of the networks once, named after its first place; `listings` maps a network to its list."""
    found = {}
    for net, listing in listings.items():
        for entry in listing:
            layer = found.setdefault(entry["conv"], Layer(net, entry["name"], entry["conv"]))
            layer.add(net, entry["backward_data"])
    return list(found.values())




class Subject(workers.Subject):
    """One side's variant of one convolution: for us a layout, for oneDNN a way of choosing the primitive."""

    def __init__(self, worker, peer, backend, variant, conv):
        super().__init__(worker, peer, backend, variant)
        self.conv = conv

    def request(self, mode, command="pass"):
        return f"{command} {mode} {self.layout} {self.conv}"

    def open(self, mode):
        """The name of what computes it, or none where the side has no such variant."""
        try:
            return self.worker.ask(self.request(mode, "open"))["implementation"]
        except workers.WorkerError as error:
            if error.refused:
                return None
            raise


class Sides:
    """The two children; they end with the `with` block."""

    def __init__(self, arguments, onednn_worker):
        threads = arguments.threads
        self.workers, self.variants = [], {}
        try:
            for name, variants, command in (
                    ("lamina", arguments.our_layouts,
                     workers.serve_command(arguments.program, threads=threads, measure=arguments.measure)),
                    ("onednn", arguments.variants, [onednn_worker, str(threads)])):
                self.workers.append(workers.Worker(name, command, threads))
                self.variants[name] = variants.split(",")
        except BaseException as fault:
            self.__exit__(type(fault))
            raise

    def listings(self, nets, batch):
        """{network: its convolutions}."""
        return {net: self.workers[0].ask(f"list {net} {batch}")["convolutions"] for net in nets}

    def subjects(self, conv, mode):
        """Those that there are, opened, and what computes each."""
        found = []
        for worker, backend in zip(self.workers, ("eigen", "onednn")):
            opened = [(subject, subject.open(mode)) for subject in
                      (Subject(worker, worker.name, backend, v, conv) for v in self.variants[worker.name])]
            opened = [(subject, by) for subject, by in opened if by]
            if not opened:
                raise workers.WorkerError(f"{worker.name} has no {mode} of the convolution '{conv}' among the variants "
                                          f"{', '.join(self.variants[worker.name])}")
            found += opened
        return [subject for subject, _ in found], [by for _, by in found]

    def drop(self):
        for worker in self.workers:
            worker.ask("drop")

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        workers.close_all(self.workers, at_once=fault is not None)


def judge(layer, what, subjects, implementations, samples, variants=None):
    """The line of one layer and pass, with what computed it on either side; `variants`: only these of oneDNN."""
    raced = [entry for entry in zip(subjects, implementations, samples)
             if variants is None or entry[0].peer == "lamina" or entry[0].layout in variants]
    subjects, implementations, samples = zip(*raced)
    line = race.judge(layer.name, what, subjects, samples)[0]
    by = {(subject.peer, subject.layout): name for subject, name in zip(subjects, implementations)}
    line["layer"], line["conv"] = line.pop("net"), layer.conv
    line["implementation"] = by["lamina", line["layout"]]
    line["peer_implementation"] = by["onednn", line["peer_layout"]]
    line["counts"] = {net: counts[what] for net, counts in layer.counts.items()}
    return line


def is_slower(line):
    return line["ratio"] > SLOWER and line["low"] > 1


def disturbed(lines):
    """How many lines had neighbours in more than half of the samples of one side."""
    return sum(2 * line["disturbed"] > line["samples"] for line in lines)


def summary(lines, nets):
    """For each network, and for all: the share of our time in layers slower than oneDNN, every layer as often as the
    networks have it, and how many of the distinct 3x3 ones, pass by pass, are faster by FASTER."""
    found = []
    for name, members in [(net, [net]) for net in nets] + ([("all", nets)] if len(nets) > 1 else []):
        weighted = [(line, sum(line["counts"].get(net, 0) for net in members)) for line in lines]
        weighted = [(line, times) for line, times in weighted if times]
        spatial = [line for line, _ in weighted if line["conv"].split()[5:7] == ["3", "3"]]
        total = sum(line["ms"] * times for line, times in weighted)
        found.append({
            "net": name, "ms": total, "peer_ms": sum(line["peer_ms"] * times for line, times in weighted),
            "slower_ms_share": sum(line["ms"] * times for line, times in weighted if is_slower(line)) / total,
            "slower": sum(is_slower(line) for line, _ in weighted), "distinct": len(weighted),
            "faster_3x3": sum(line["ratio"] <= 1 / FASTER for line in spatial), "distinct_3x3": len(spatial),
        })
    return found


def show(line, layer):
    x, window = layer.texts()
    print(f"{line['layer']:34}{x:>17}{window:>18}{line['pass']:>17}{sum(line['counts'].values()):6}{line['ms']:11.3f}"
          f"{line['peer_ms']:11.3f}{line['peer_layout']:>10}{line['ratio']:8.3f}"
          f"{line['low']:10.3f} - {line['high']:.3f}  {line['disturbed']}/{line['samples']}", flush=True)


def show_summary(title, found):
    print(title)
    for total in found:
        slower = f"{100 * total['slower_ms_share']:.1f} % of the time in layers slower by more than 10 % " \
                 f"({total['slower']} of {total['distinct']})"
        faster = f"{total['faster_3x3']} of {total['distinct_3x3']} of the 3x3 ones faster by {FASTER} x"
        print(f"{total['net']:18}{total['ms']:10.1f} ms, oneDNN {total['peer_ms']:.1f} ms: {slower}"
              + (f"; {faster}" if total["distinct_3x3"] else ""))


def run(arguments, file):
    """Races every distinct convolution, pass by pass; rows go to the file after each layer. Returns the summaries."""
    nets = arguments.nets.split(",")
    variants = set(arguments.variants.split(","))
    both = bool(variants & DIRECT) and not variants <= DIRECT
    found, lines, direct = [], [], []
    with Sides(arguments, onednn_worker(arguments.program)) as sides:
        listings = sides.listings(nets, arguments.batch)
        bare = [net for net, its in listings.items() if not its]
        if bare:
            raise workers.WorkerError(f"no convolutions in {' and '.join(bare)}, and --layers races nothing else: leave "
                                      f"{'it' if len(bare) == 1 else 'them'} out of --nets")
        layers = distinct(listings)
        context = rows.context(sys.argv[0], threads=arguments.threads, peers={})
        rows.take_versions(context, {worker.name: worker.versions for worker in sides.workers})
        print(HEADER, flush=True)
        for layer in layers:
            for what in rows.LAYER_PASSES:
                if not any(counts[what] for counts in layer.counts.values()):
                    continue
                subjects, implementations = sides.subjects(layer.conv, what)
                samples = race.race(subjects, what, arguments.samples, arguments.others, arguments.retries)
                sides.drop()
                for subject, its in zip(subjects, samples):
                    found += rows.rows_of(what, its, what="layer", network=layer.network, layer=layer.node,
                                          backend=subject.backend, type="f32", layout=subject.layout,
                                          batch=arguments.batch)
                raced = (layer, what, subjects, implementations, samples)
                lines.append(judge(*raced))
                if both:
                    direct.append(judge(*raced, variants=DIRECT))
                show(lines[-1], layer)
            file.write(context, found, comparison=lines, comparison_direct=direct)
    totals = {"summary": summary(lines, nets)} | ({"summary_direct": summary(direct, nets)} if both else {})
    file.write(context, found, comparison=lines, comparison_direct=direct, **totals)
    show_summary(f"Against the best of oneDNN's variants {arguments.variants}:", totals["summary"])
    if both:
        show_summary("Against the best by its direct algorithm alone, which is what PyTorch asks for:",
                     totals["summary_direct"])
    loud = disturbed(lines)
    if loud:
        print(f"Note: {loud} of {len(lines)} lines were disturbed in most of their samples by what else runs here; such "
              "ratios flatter Lamina. Run it again on an idle machine.")
    print(f"Rows and ratios: {file.path}")
    return totals


def onednn_worker(program):
    """oneDNN's child, beside lamina_bench."""
    return os.path.join(os.path.dirname(program), "onednn_worker")
