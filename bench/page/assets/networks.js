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

    const speedCell = (time, base) => {
      if (!time || !base) return make("td", {className: "number"});
      const ratio = base.ms / time.ms;
      return make("td", {className: "number", "data-sort": String(ratio)}, `×${digits(ratio)}`);
    };

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
      const parts =
          data.passes.filter((part) => part !== "inference" && rows.some((machine) => timeOf(machine, net, part)));
      const inference = rows.some((machine) => timeOf(machine, net, "inference")) ? ["inference"] : [];
      const slowest = {ms: Infinity};
      rows.sort((a, b) => (timeOf(a, net, pass.value) || slowest).ms - (timeOf(b, net, pass.value) || slowest).ms);
      const base = timeOf(reference(), net, pass.value);
      fill(byId("networks-one"), ["machine", ...parts, "speed-up", "images/s", ...inference], rows.map((machine) => {
        const time = timeOf(machine, net, pass.value);
        const cells = (list) => list.map((part) => timeCell(timeOf(machine, net, part)));
        const rate = time ?
            make("td", {className: "number", "data-sort": String(16e3 / time.ms)}, digits(16e3 / time.ms)) :
            make("td");
        return rowOf(machine, [...cells(parts), speedCell(time, base), rate, ...cells(inference)]);
      }));
      byId("networks-one-caption").textContent =
          `${net}, ms; speed-up of ${pass.value} against ${reference().label}${base ? "" : ", which has no such time"}`;
    };

    const showAll = () => {
      const part = pass.value, speed = byId("networks-speed").checked;
      const nets = data.networks.filter((net) => data.machines.some((machine) => timeOf(machine, net, part)));
      const mean = (machine) => {
        const logs = nets.map((net) => timeOf(machine, net, part)).filter(Boolean).map((time) => Math.log(time.ms));
        return logs.length ? logs.reduce((sum, log) => sum + log, 0) / logs.length : Infinity;
      };
      const rows = data.machines.filter((machine) => nets.some((net) => timeOf(machine, net, part)));
      rows.sort((a, b) => mean(a) - mean(b));
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
    };
    for (const control of [network, pass, against, byId("networks-speed")]) control.addEventListener("change", show);
    show();
  }
}
