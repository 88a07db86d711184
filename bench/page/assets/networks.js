// The table of the networks: one network with all its passes, or one pass of all networks; times, or the speed-up
// against a chosen row.
"use strict";
{
  const data = dataOf("data-networks");
  if (data) {
    const byId = (id) => document.getElementById(id);
    const network = byId("networks-network"), pass = byId("networks-pass"), against = byId("networks-against");
    const reference = () => data.machines[Number(against.value)];
    const timeOf = (machine, net, part) => (machine.times[net] || {})[part];
    const timeText = (time) => {
      const children = [digits(time.ms)];
      if (time.low !== undefined)
        children.push(make("small", {className: "under"}, `${digits(time.low)} – ${digits(time.high)}`));
      return children;
    };

    const timeCell = (time) => {
      if (!time) return make("td", {className: "number"});
      const cell = make("td", {className: "number", "data-sort": String(time.ms)});
      if (time.run)
        cell.append(make(
            "button", {
              type: "button",
              className: "number",
              "data-run": time.run,
              title: `${time.name}: ${time.samples} samples${
                  time.grade ? `, grade ${time.grade}` : ""}. Click copies the command.`
            },
            ...timeText(time)));
      else
        cell.append(...timeText(time));
      return cell;
    };

    /// How many times as fast as the reference: by the rounds in which both took turns; else by the medians, from the
    /// least to the most that the intervals of both times allow.
    const speedUp = (time, base) => {
      const rounds = (time.rounds || {})[reference().id];
      if (rounds) return {ratio: rounds.middle, low: rounds.low, high: rounds.high};
      return {
        ratio: base.ms / time.ms,
        low: (base.low || base.ms) / (time.high || time.ms),
        high: (base.high || base.ms) / (time.low || time.ms)
      };
    };

    const speedCell = (time, base) => {
      if (!time || !base) return make("td", {className: "number"});
      const {ratio, low, high} = speedUp(time, base);
      const cell = make("td", {className: "number", "data-sort": String(ratio)}, `×${digits(ratio)}`);
      if (low < high && time !== base && time.low !== undefined)
        cell.append(make("small", {className: "under"}, `${digits(low)} – ${digits(high)}`));
      return cell;
    };

    const memoryCell = (time) =>
        (time && time.MiB ? make("td", {className: "number", "data-sort": String(time.MiB)}, digits(time.MiB)) :
                            make("td", {className: "number"}));

    const rowOf = (machine, cells) => make(
        "tr", {className: [machine.ours ? "ours" : "", machine === reference() ? "reference" : ""].join(" ").trim()},
        make("th", {scope: "row", title: machine.source}, machine.label), ...cells);

    const fill = (table, heads, rows) => {
      table.tHead.replaceChildren(
          make("tr", {}, ...heads.map((head, i) => make("th", {scope: "col", className: i ? "number" : ""}, head))));
      table.tBodies[0].replaceChildren(...rows);
      makeSortable(table);
    };

    const showOne = () => {
      const net = network.value;
      const rows = data.machines.filter((machine) => machine.times[net]);
      const parts = data.passes.filter((part) => rows.some((machine) => timeOf(machine, net, part)));
      const slowest = {ms: Infinity};
      rows.sort((a, b) => (timeOf(a, net, pass.value) || slowest).ms - (timeOf(b, net, pass.value) || slowest).ms);
      const base = (part) => timeOf(reference(), net, part);
      const compared = parts.filter(base);
      const memory = rows.some((machine) => (timeOf(machine, net, pass.value) || {}).MiB);
      const heads = [
        "machine", ...parts, ...compared.map((part) => `${part} ×`), "images/s", ...(memory ? ["plan, MiB"] : [])
      ];
      fill(byId("networks-one"), heads, rows.map((machine) => {
        const time = timeOf(machine, net, pass.value);
        const rate = time ?
            make("td", {className: "number", "data-sort": String(16e3 / time.ms)}, digits(16e3 / time.ms)) :
            make("td");
        return rowOf(machine, [
          ...parts.map((part) => timeCell(timeOf(machine, net, part))),
          ...compared.map((part) => speedCell(timeOf(machine, net, part), base(part))), rate,
          ...(memory ? [memoryCell(time)] : [])
        ]);
      }));
      byId("networks-one-caption").textContent = `${net}, ms; ×: speed-up against ${reference().label}${
          compared.length ? "" : ", which has no such time"}; images/s of ${pass.value}`;
    };

    /// Links to the other sections, whose lists then show this network.
    const showLinks = () => {
      const net = network.value, links = [];
      for (const section of document.querySelectorAll("main > section")) {
        const charts = [...section.querySelectorAll(".chart")].map((chart) => chart.id.replace("chart-", ""));
        if (!charts.some((name) => has(name, net))) continue;
        const link = make("a", {href: `#${section.id}`}, section.dataset.short);
        link.addEventListener("click", () => charts.forEach((name) => choose(name, net)));
        links.push(links.length ? " · " : "", link);
      }
      byId("networks-more").replaceChildren(...(links.length ? [`More of ${net}: `, ...links] : []));
    };

    /// Every measured row against the chosen one, network by network.
    const showChart = () => {
      if (!views.speedups) return;
      const part = pass.value, records = [];
      for (const net of data.networks)
        for (const machine of data.machines) {
          const time = timeOf(machine, net, part), base = timeOf(reference(), net, part);
          if (!machine.measured || machine === reference() || !time || !base) continue;
          records.push(
              {network: net, series: machine.label, ...speedUp(time, base), ms: time.ms, base: base.ms, run: time.run});
        }
      byId("networks-chart").hidden = !records.length;
      if (!records.length) return;
      const nets = new Set(records.map((one) => one.network)), series = new Set(records.map((one) => one.series));
      views.speedups.height(Math.max(40, nets.size * (10 + 10 * series.size))).data("speedups", records).runAsync();
      byId("networks-chart-of").textContent = `Speed-up of ${part} against ${reference().label}`;
    };

    const showAll = () => {
      const part = pass.value, speed = byId("networks-speed").checked;
      const nets = data.networks.filter((net) => data.machines.some((machine) => timeOf(machine, net, part)));
      const mean = (list) => (list.length ? list.reduce((sum, one) => sum + one, 0) / list.length : Infinity);
      const logs = (net, machines) =>
          machines.map((machine) => timeOf(machine, net, part)).filter(Boolean).map((time) => Math.log(time.ms));
      const usual = Object.fromEntries(nets.map((net) => [net, mean(logs(net, data.machines))]));
      /// Against what a network usually takes: not every machine has every network.
      const place = (machine) => mean(nets.flatMap((net) => logs(net, [machine]).map((log) => log - usual[net])));
      const rows = data.machines.filter((machine) => nets.some((net) => timeOf(machine, net, part)));
      rows.sort((a, b) => place(a) - place(b));
      fill(byId("networks-all"), ["machine", ...nets], rows.map((machine) => rowOf(machine, nets.map((net) => {
                                                                  const time = timeOf(machine, net, part);
                                                                  return speed ?
                                                                      speedCell(time, timeOf(reference(), net, part)) :
                                                                      timeCell(time);
                                                                }))));
      byId("networks-all-caption").textContent =
          speed ? `All networks, ${part}: speed-up against ${reference().label}` : `All networks, ${part}, ms`;
    };

    const show = () => {
      showOne();
      showAll();
      drawn.then(() => {
        showLinks();
        showChart();
      });
    };
    for (const control of [network, pass, against, byId("networks-speed")]) control.addEventListener("change", show);
    show();
  }
}
