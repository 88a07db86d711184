// The section of networks: our times among the times of published machines, as a picture and in numbers; all times.
"use strict";
{
  let data;
  const value = (name) => byId(`networks-${name}`).value;
  const reference = () => data.machines[Number(value("against"))];
  const timeOf = (machine, net, part) => (machine.times[net] || {})[part];

  const choice = (label, name, options, chosen) => make(
      "label", {}, `${label} `, make("select", {id: `networks-${name}`}, ...options.map(
          ([text, its]) => make("option", {value: its, selected: its === chosen}, text))));

  const timeCell = (time) => {
    if (!time) return "";
    const note = time.low !== undefined ? `${digits(time.low)} – ${digits(time.high)}` : "";
    const title = time.run && `${time.name}: ${time.samples} passes, ${time.grade}. Click copies the command.`;
    return {text: digits(time.ms), number: time.ms, note, title, rerun: time.run, under: true};
  };

  /// The speed relative to another machine: the ratio of lamina_bench compare if both took turns, otherwise the ratio
  /// of the medians.
  const speedCell = (time, other, base) => {
    if (!time || !base) return "";
    const {ratio, low, high} = (time.turns || {})[data.machines.indexOf(other)] || {ratio: base.ms / time.ms};
    const note = low < high ? `${digits(low)} – ${digits(high)}` : "";
    return {text: `×${digits(ratio)}`, number: ratio, note, under: true};
  };

  const rowOf = (machine, cells) => ({
    cells: [machine.label, ...cells],
    head: `${machine.label}: ${machine.source}`,
    mark: [
      machine.ours ? "ours" : machine.measured ? "other" : "", machine === reference() ? "reference" : ""
    ].join(" ").trim()
  });
  /// Sorts machines by their time of this pass. Machines without this time come last.
  const inOrder = (machines, net, part) => {
    const msOf = (machine) => (timeOf(machine, net, part) || {ms: 1e30}).ms;
    return machines.sort((a, b) => msOf(a) - msOf(b));
  };
  const rowsWith = (net, part) => inOrder(data.machines.filter((machine) => timeOf(machine, net, part)), net, part);
  const ourFirst = (rows) => rows.find((one) => one.ours) || rows.find((one) => one.measured);
  const figure = (number) => ({text: digits(number), number});

  /// Shows the main numbers: our time, the ratio of a race, and the published machine whose time is nearest to ours.
  const showNumbers = (net, part) => {
    const tiles = [], rows = rowsWith(net, part), msOf = (machine) => timeOf(machine, net, part).ms;
    const tile = (text, about, bad) =>
        tiles.push(make("p", {className: bad ? "bad" : ""}, make("strong", {}, text), ` ${about}`));
    const range = ({low, high}) => (low ? `${digits(low)} – ${digits(high)}` : "no interval");
    const first = ourFirst(rows);
    if (first) {
      const time = timeOf(first, net, part), passes = time.samples > 1 ? `half of ${time.samples} passes` : "one pass";
      const about = `${net}, ${part}, 16 images: ${first.label}; ${passes}: ${range(time)} ms; ${time.grade}`;
      tile(`${digits(time.ms)} ms`, about, /^grade [CD]/.test(time.grade));
    }
    const [race] = data.raced.filter((one) => one.part === part && (one.networks || one.network === net))
                       .sort((a, b) => b.networks - a.networks || a.ratio - b.ratio);
    if (race) {
      const about = `the speed of ${race.other}, for ${race.series}: ${race.network} (${range(race)}) ${race.verdict}`;
      tile(`×${digits(race.ratio)}`, about.trim());
    }
    const apart = (machine) => Math.abs(Math.log(msOf(machine) / msOf(first)));
    const [near] = first ? rows.filter((one) => !one.measured).sort((a, b) => apart(a) - apart(b)) : [];
    if (near) tile(`×${digits(msOf(near) / msOf(first))}`, `as fast as the nearest published machine, ${near.label}`);
    byId("networks-numbers").replaceChildren(...tiles);
  };

  /// Shows a row for each machine, sorted by time, with a dot on a logarithmic axis. Of several rows of one published
  /// device, or of one other program, only the fastest is shown.
  const showPicture = (net, part) => {
    const all = rowsWith(net, part), rows = all.filter((one) => all.find((other) => other.group === one.group) === one);
    const times = rows.map((machine) => timeOf(machine, net, part)), first = ourFirst(rows);
    const low = Math.min(...times.map((time) => time.low || time.ms)) / 1.3;
    const high = Math.max(...times.map((time) => time.high || time.ms)) * 1.3;
    const at = (ms) => 100 * Math.log(ms / low) / Math.log(high / low);
    const mark = (className, from, to, text) => {
      const its = make("i", {className}, text);
      its.style.left = `${at(from)}%`;
      if (to) its.style.width = `${at(to) - at(from)}%`;
      return its;
    };
    const steps = [-2, -1, 0, 1, 2, 3, 4, 5, 6].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power));
    const inside = steps.filter((ms) => ms > low && ms < high);
    const ticks = inside.length > 5 ? inside.filter((ms) => Number.isInteger(Math.log10(ms))) : inside;
    const plain = (cell) => (cell ? {...cell, note: ""} : "");
    const cells = (time) => [
      make(
          "td", {className: "plot"}, ...ticks.map((tick) => mark("tick", tick)),
          time.low ? mark("range", time.low, time.high) : null, mark("dot", time.ms)),
      plain(timeCell(time)), first ? plain(speedCell(time, first, timeOf(first, net, part))) : ""
    ];
    const table = byId("networks-picture");
    fillTable(table, {
      caption: `${net}, ${part}, 16 images${first ? `; ×: times as fast as ${first.label}` : ""}`,
      head: ["machine", "", "ms", "×"],
      rows: rows.map((machine, i) => rowOf({...machine, label: machine.short}, cells(times[i])))
    });
    const head = table.tHead.rows[0].cells[1], unit = (ms) => (ms < 1000 ? `${ms} ms` : `${ms / 1000} s`);
    head.className = "plot";
    head.append(...ticks.map((ms) => mark("label", ms, 0, unit(ms))));
  };

  const showOne = (net, pass) => {
    const rows = inOrder(data.machines.filter((machine) => machine.times[net]), net, pass);
    const parts = data.passes.filter((part) => rows.some((machine) => timeOf(machine, net, part)));
    const base = (part) => timeOf(reference(), net, part);
    const compared = parts.filter(base);
    const memory = rows.some((machine) => (timeOf(machine, net, pass) || {}).MiB);
    const speeds = compared.map((part) => `${part} ×`);
    const head = ["machine", ...parts, ...speeds, "images/s", ...(memory ? ["plan, MiB"] : [])];
    const cells = (machine) => {
      const time = timeOf(machine, net, pass);
      return [
        ...parts.map((part) => timeCell(timeOf(machine, net, part))),
        ...compared.map((part) => speedCell(timeOf(machine, net, part), reference(), base(part))),
        time ? figure(16e3 / time.ms) : "",
        ...(memory ? [time && time.MiB ? figure(time.MiB) : ""] : [])
      ];
    };
    const caption = `${net}, ms; ×: speed-up against ${reference().label}${
        compared.length ? "" : ", which has no such time"}; images/s of ${pass}`;
    fillTable(byId("networks-one"), {caption, head, rows: rows.map((machine) => rowOf(machine, cells(machine)))});
  };

  const showAll = (first, part) => {
    const nets = data.networks.filter((net) => data.machines.some((machine) => timeOf(machine, net, part)));
    const some = data.machines.filter((machine) => nets.some((net) => timeOf(machine, net, part)));
    const rows = inOrder(some, first, part);
    fillTable(byId("networks-all"), {
      caption: `All networks, ${part}, ms`,
      head: ["machine", ...nets],
      rows: rows.map((machine) => rowOf(machine, nets.map((net) => timeCell(timeOf(machine, net, part)))))
    });
  };

  const show = () => {
    for (const show of [showNumbers, showPicture, showOne, showAll]) show(value("network"), value("pass"));
    if (views.raced && data.raced.some((one) => one.part === value("pass")))
      views.raced.signal("raced_pick", value("pass")).runAsync();
  };

  ownParts.networks = {
    make: (its, charts) => {
      data = its;
      const same = (list) => list.map((one) => [one, one]);
      const machines = data.machines.map((one, i) => [one.label, String(i)]);
      const key = {ours: "Lamina", other: "other programs, measured", published: "published"};
      return [
        make("div", {id: "networks-numbers"}),
        make(
            "div", {className: "controls"}, choice("Network", "network", same(data.networks), data.network),
            choice("Pass", "pass", same(data.passes), data.pass),
            ...Object.entries(key).map(([mark, text]) => make(
                "span", {className: `key ${mark}`}, make("i", {className: "dot"}), text))),
        make("div", {className: "beside"}, tableOf(null, {id: "networks-picture"}), ...charts),
        make(
            "details", {}, make("summary", {}, "All passes of this network, and speed-ups"),
            make("div", {className: "controls"}, choice("Against", "against", machines, String(data.reference))),
            tableOf(null, {id: "networks-one"})),
        make("details", {}, make("summary", {}, "All networks"), tableOf(null, {id: "networks-all"}))
      ];
    },
    start: () => {
      for (const name of ["network", "pass", "against"]) byId(`networks-${name}`).addEventListener("change", show);
      show();
    }
  };
}
