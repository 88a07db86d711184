// The networks: one with all its passes, and its speed-up against a chosen row; one pass of all.
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
    const title = time.run && `${time.name}: ${time.samples} passes${
        time.grade ? `, grade ${time.grade}` : ""}. Click copies the command.`;
    return {text: digits(time.ms), number: time.ms, note, title, rerun: time.run, under: true};
  };

  /// How many times as fast as the reference: what lamina_bench compare found where both took turns; else the ratio of
  /// the medians alone.
  const speedUp = (time, base) => (time.turns || {})[value("against")] || {ratio: base.ms / time.ms};

  const speedCell = (time, base) => {
    if (!time || !base) return "";
    const {ratio, low, high} = speedUp(time, base);
    const note = low < high ? `${digits(low)} – ${digits(high)}` : "";
    return {text: `×${digits(ratio)}`, number: ratio, note, under: true};
  };

  const rowOf = (machine, cells) => ({
    cells: [machine.label, ...cells],
    head: machine.source,
    mark: [machine.ours ? "ours" : "", machine === reference() ? "reference" : ""].join(" ").trim()
  });
  /// The machines by their times of a network; those without it come last.
  const inOrder = (machines, net, part) => {
    const msOf = (machine) => (timeOf(machine, net, part) || {ms: 1e30}).ms;
    return machines.sort((a, b) => msOf(a) - msOf(b));
  };
  const figure = (number) => ({text: digits(number), number});

  const showOne = () => {
    const net = value("network"), pass = value("pass");
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
        ...compared.map((part) => speedCell(timeOf(machine, net, part), base(part))),
        time ? figure(16e3 / time.ms) : "",
        ...(memory ? [time && time.MiB ? figure(time.MiB) : ""] : [])
      ];
    };
    const caption = `${net}, ms; ×: speed-up against ${reference().label}${
        compared.length ? "" : ", which has no such time"}; images/s of ${pass}`;
    fillTable(byId("networks-one"), {caption, head, rows: rows.map((machine) => rowOf(machine, cells(machine)))});
  };

  const showAll = () => {
    const part = value("pass");
    const nets = data.networks.filter((net) => data.machines.some((machine) => timeOf(machine, net, part)));
    const some = data.machines.filter((machine) => nets.some((net) => timeOf(machine, net, part)));
    const rows = inOrder(some, value("network"), part);
    fillTable(byId("networks-all"), {
      caption: `All networks, ${part}, ms`,
      head: ["machine", ...nets],
      rows: rows.map((machine) => rowOf(machine, nets.map((net) => timeCell(timeOf(machine, net, part)))))
    });
  };

  /// Every measured row against the chosen one, network by network.
  const showChart = () => {
    if (!views.speedups) return;
    const part = value("pass"), records = [];
    for (const net of data.networks)
      for (const machine of data.machines) {
        const time = timeOf(machine, net, part), base = timeOf(reference(), net, part);
        if (!machine.measured || machine === reference() || !time || !base) continue;
        records.push(
            {network: net, series: machine.label, ...speedUp(time, base), ms: time.ms, base: base.ms, run: time.run});
      }
    byId("networks-chart").hidden = !records.length;
    if (!records.length) return;
    const count = (field) => new Set(records.map((one) => one[field])).size;
    views.speedups.height(Math.max(40, count("network") * (10 + 10 * count("series"))))
        .data("records_2", records)
        .runAsync();
    byId("networks-chart-of").textContent = `Speed-up of ${part} against ${reference().label}`;
  };

  const show = () => {
    showOne();
    showAll();
    showChart();
  };

  ownParts.networks = {
    make: (its, charts) => {
      data = its;
      const same = (list) => list.map((one) => [one, one]);
      const machines = data.machines.map((one, i) => [one.label, String(i)]);
      return [
        make(
            "div", {className: "controls"}, choice("Network", "network", same(data.networks), data.network),
            choice("Pass", "pass", same(data.passes), "total"),
            choice("Speed-up against", "against", machines, String(data.reference))),
        tableOf(null, {id: "networks-one"}),
        make("div", {id: "networks-chart"}, make("h3", {id: "networks-chart-of"}), ...charts),
        tableOf(null, {id: "networks-all"})
      ];
    },
    start: () => {
      for (const name of ["network", "pass", "against"]) byId(`networks-${name}`).addEventListener("change", show);
      show();
    }
  };
}
