// Dollars from seconds, joules and the prices that the reader sets. docs/report.md has the formulas.
"use strict";
{
  const data = dataOf("data-cost");
  if (data) {
    const byId = (id) => document.getElementById(`cost-${id}`);
    const what = byId("what"), file = byId("file"), preemptible = byId("preemptible"), kwh = byId("kwh");
    const machine = byId("machine"), list = byId("price"), usd = byId("usd"), slider = byId("slider");
    const own = {};  // by machine, the price that the reader set

    const items = () => data.items.filter((item) => item.what === what.value);
    /// The newest of the chosen file that fits; preemptible or not as wanted, where both are there.
    const listed = (item) => {
      const fitting = item.prices.map((place) => data.prices[place])
                          .filter((price) => data.files.length < 2 || price.file === file.value);
      return fitting.find((price) => price.preemptible === preemptible.checked) || fitting[0];
    };
    const priceOf = (item) => (item.machine in own ? own[item.machine] : (listed(item) || {}).usd);
    const dollars = (item) => {
      const price = priceOf(item);
      return price === undefined ? undefined :
                                   item.seconds / 3600 * price + (item.joules || 0) / 3.6e6 * (Number(kwh.value) || 0);
    };

    /// The price by the hour at which a machine costs what the cheapest other one does; none, where its electricity
    /// alone costs more.
    const breakEven = (item, all) => {
      const others =
          all.filter((other) => other.machine !== item.machine).map(dollars).filter((cost) => cost !== undefined);
      if (!others.length) return undefined;
      const left = Math.min(...others) - (item.joules || 0) / 3.6e6 * (Number(kwh.value) || 0);
      return left > 0 ? left / (item.seconds / 3600) : undefined;
    };

    const number = (value) =>
        (value === undefined || value === null ?
             make("td") :
             make("td", {className: "number", "data-sort": String(value)}, value > 0 ? digits(value) : String(value)));

    /// Of each of so many, and below what the idle device takes in that time.
    const joulesOf = (item, times) => {
      const cell = number(item.joules ? item.joules / times : undefined);
      if (item.joules && item.idle_watts)
        cell.append(
            make("small", {className: "under"}, `${digits(item.idle_watts * item.seconds / times)} of it idle`));
      return cell;
    };

    const fillTable = (all) => {
      const table = byId("table"), unit = all.length ? all[0].unit : "", images = unit === "million images";
      const heads = [
        "machine", `USD / ${unit}`, ...(images ? ["USD / ImageNet epoch"] : []), "USD/h", "wins below USD/h",
        `hours / ${unit}`, ...(data.energy ? [images ? "J / image" : "J / epoch"] : []), "again"
      ];
      table.tHead.replaceChildren(make(
          "tr", {},
          ...heads.map(
              (head, i) => make(
                  "th",
                  {scope: "col",
                   className: head === "again" ? "plain" :
                       i                       ? "number" :
                                                 ""},
                  head))));
      table.tBodies[0].replaceChildren(...all.map((item) => {
        const cost = dollars(item), price = listed(item);
        const cells = [
          number(cost), ...(images ? [number(cost === undefined ? cost : cost * data.imagenet / 1e6)] : []),
          number(priceOf(item)), number(breakEven(item, all)), number(item.seconds / 3600)
        ];
        if (data.energy) cells.push(joulesOf(item, images ? 1e6 : 1));
        cells[images ? 2 : 1].title = item.machine in own ? "as set above" : price ? price.label : "no price";
        cells.push(
            item.run ?
                make(
                    "td", {},
                    make(
                        "button",
                        {type: "button", className: "copy", "data-run": item.run, "aria-label": "copy the command"},
                        "copy")) :
                make("td"));
        return make("tr", {className: item.lamina ? "ours" : ""}, make("th", {scope: "row"}, item.who), ...cells);
      }));
      makeSortable(table);
      byId("caption").textContent = `${what.value}: cost by machine`;
    };

    const show = () => {
      const all = items();
      const last = (cost) => (cost === undefined ? Infinity : cost);
      all.sort((a, b) => (last(dollars(a)) - last(dollars(b))) || a.seconds - b.seconds);
      fillTable(all);
      drawn.then(() => {
        if (!views.cost) return;
        const priced = all.filter((item) => dollars(item) !== undefined);
        views.cost.height(38 * Math.max(1, priced.length))
            .data("ranking", priced.map((item) => ({
                                          who: item.who,
                                          usd: dollars(item),
                                          price: priceOf(item),
                                          whose: item.ours ? "measured" : "published",
                                          run: item.run
                                        })))
            .runAsync();
      });
    };

    const chosen = () => items().find((item) => item.machine === machine.value);
    const showPrice = () => {
      const item = chosen(), price = item && priceOf(item);
      usd.value = price === undefined ? "" : String(Number(price.toPrecision(4)));
      slider.value = String(price > 0 ? Math.log10(price) : 0);
    };
    const fillPrices = () => {
      const item = chosen(), fits = new Set(item ? item.prices : []);
      const all =
          data.prices.map((price, place) => ({price, place})).sort((a, b) => fits.has(b.place) - fits.has(a.place));
      list.replaceChildren(
          make("option", {value: ""}, "as listed"),
          ...all.map(({price, place}) => make("option", {value: String(place)}, price.label)));
    };
    const fillMachines = () => {
      const before = machine.value, all = items();
      const names = [...new Set([...all.filter((item) => item.ours), ...all].map((item) => item.machine))];
      machine.replaceChildren(...names.map((name) => make("option", {}, name)));
      if (names.includes(before)) machine.value = before;
      fillPrices();
      showPrice();
    };
    const set = (value) => {
      if (value === undefined)
        delete own[machine.value];
      else
        own[machine.value] = value;
      show();
    };

    what.addEventListener("change", () => {
      fillMachines();
      show();
    });
    for (const control of [file, preemptible, kwh])
      control.addEventListener("change", () => {
        showPrice();
        show();
      });
    machine.addEventListener("change", () => {
      fillPrices();
      showPrice();
    });
    list.addEventListener("change", () => {
      set(list.value === "" ? undefined : data.prices[Number(list.value)].usd);
      showPrice();
    });
    usd.addEventListener("input", () => {
      set(usd.value === "" ? undefined : Math.max(0, Number(usd.value)));
      slider.value = String(Number(usd.value) > 0 ? Math.log10(Number(usd.value)) : -3);
    });
    slider.addEventListener("input", () => {
      usd.value = String(Number((10 ** Number(slider.value)).toPrecision(3)));
      set(Number(usd.value));
    });
    fillMachines();
    show();
  }
}
