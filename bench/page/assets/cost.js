// Computes costs in dollars from seconds and from prices that the reader sets. docs/report.md has the formulas.
"use strict";
{
  let data;
  const its = (name) => byId(`cost-${name}`);
  const imagenet = 1281167;  // number of images in ImageNet's training set
  const own = {};  // the prices that the reader set, by machine
  const itemsOf = (what) => data.items.filter((item) => item.what === what);

  /// The newest price for a machine. If there are preemptible and other prices, the box on the page decides.
  const listed = (item) => {
    const fitting = item.prices.map((place) => data.prices[place]);
    return fitting.find((price) => price.preemptible === its("preemptible").checked) || fitting[0];
  };
  const priceOf = (item) => own[item.machine] ?? listed(item)?.usd;
  const hours = (item) => item.seconds / 3600;
  const dollars = (item) => hours(item) * (priceOf(item) ?? Infinity);  // Infinity: there is no price

  /// The hourly price at which an item costs as much as the cheapest other machine; Infinity: no other machine has a
  /// price.
  const breakEven = (item, all) =>
      Math.min(...all.filter((one) => one.machine !== item.machine).map(dollars)) / hours(item);

  /// The items of a kind, the cheapest first.
  const ranked = (what) => itemsOf(what).sort((a, b) => (dollars(a) - dollars(b)) || a.seconds - b.seconds);
  const figure = (number, title) =>
      (Number.isFinite(number) ? {text: number > 0 ? digits(number) : String(number), number, title} : "");

  const showRanking = (all) => {
    const unit = all[0].unit, images = unit === "million images";
    const head = [
      "machine", `USD / ${unit}`, ...(images ? ["USD / ImageNet epoch"] : []), "USD/h", "wins below USD/h",
      `hours / ${unit}`
    ];
    const rows = all.map((item) => {
      const cost = dollars(item), price = listed(item);
      const whose = own[item.machine] !== undefined ? "as set above" : price ? price.label : "no price";
      const epoch = images ? [figure(cost * imagenet / 1e6)] : [];
      const cells = [item.who, figure(cost), ...epoch, figure(priceOf(item), whose), figure(breakEven(item, all)),
                     figure(hours(item))];
      return {cells, rerun: item.run, mark: item.ours ? "ours" : "", head: item.who};
    });
    fillTable(its("table"), {caption: `${its("what").value}: cost by machine`, head, rows});
  };

  const show = () => {
    const all = ranked(its("what").value);
    showRanking(all);
    const winsOf = (wins) => (wins < Infinity ? `; the cheapest below ${digits(wins)} USD/h` : "");
    // A measured machine without a price is shown with its fastest row. A published machine without a price is left
    // out.
    const isFirst = (item) => item.measured && all.find((one) => one.machine === item.machine) === item;
    const records = all.filter((item) => dollars(item) < Infinity || isFirst(item)).map((item) => ({
      who: item.who,
      usd: dollars(item) < Infinity ? dollars(item) : 0,
      said: dollars(item) < Infinity ? digits(dollars(item)) : `no price${winsOf(breakEven(item, all))}`,
      price: priceOf(item),
      whose: item.measured ? "measured" : "published",
      run: item.run
    }));
    if (views.cost) views.cost.height(38 * Math.max(1, records.length)).data("records_0", records).runAsync();
  };

  const showPrice = () => {
    const price = priceOf(itemsOf(its("what").value).find((item) => item.machine === its("machine").value));
    its("usd").value = price === undefined ? "" : String(Number(price.toPrecision(4)));
    its("slider").value = String(price > 0 ? Math.log10(price) : 0);
  };
  const fillMachines = () => {
    const before = its("machine").value, all = itemsOf(its("what").value);
    const names = [...new Set([...all.filter((item) => item.measured), ...all].map((item) => item.machine))];
    its("machine").replaceChildren(...names.map((name) => make("option", {}, name)));
    if (names.includes(before)) its("machine").value = before;
    showPrice();
  };
  const set = (price) => {
    own[its("machine").value] = price;
    show();
  };
  const on = (name, event, act) => its(name).addEventListener(event, act);

  ownParts.cost = {
    make: (given, charts) => {
      data = given;
      const label = (...children) => make("label", {}, ...children);
      const input = (name, type, more) => make("input", {id: `cost-${name}`, type, ...more});
      const whats = data.whats.map((what) => make("option", {}, what));
      const slider = {min: "-3", max: "2", step: "0.01", "aria-label": "Price by the hour, from 0.001 to 100 USD"};
      return [
        make(
            "div", {className: "controls"}, label("What ", make("select", {id: "cost-what"}, ...whats)),
            label(input("preemptible", "checkbox"), " Preemptible prices, where there are any")),
        make(
            "div", {className: "controls"}, label("Price of ", make("select", {id: "cost-machine"})),
            label("or USD/h ", input("usd", "number", {min: "0", step: "any"})),
            label("Slider ", input("slider", "range", slider))),
        ...charts, tableOf(null, {id: "cost-table"})
      ];
    },
    start: () => {
      on("what", "change", () => {
        fillMachines();
        show();
      });
      on("preemptible", "change", () => {
        showPrice();
        show();
      });
      on("machine", "change", showPrice);
      on("usd", "input", () => {
        set(its("usd").value === "" ? undefined : Math.max(0, Number(its("usd").value)));
        its("slider").value = String(Number(its("usd").value) > 0 ? Math.log10(Number(its("usd").value)) : -3);
      });
      on("slider", "input", () => {
        its("usd").value = String(Number((10 ** Number(its("slider").value)).toPrecision(3)));
        set(Number(its("usd").value));
      });
      fillMachines();
      show();
    }
  };
}
