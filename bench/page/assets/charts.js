// Draws the charts with Vega-Embed, as SVG whose colours are the page's CSS variables.
"use strict";

const CONFIG = (() => {
  const axis = {
    domainColor: "var(--muted)",
    tickColor: "var(--muted)",
    gridColor: "var(--grid)",
    labelColor: "var(--ink)",
    titleColor: "var(--ink)",
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: "normal",
    labelLimit: 220
  };
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    axis,
    view: {stroke: "var(--line)"},
    legend: {
      labelColor: "var(--ink)",
      titleColor: "var(--ink)",
      labelFontSize: 12,
      labelLimit: 320,
      orient: "bottom",
      direction: "horizontal",
      columns: {expr: "width > 560 ? 3 : 1"},
      symbolBaseFillColor: "var(--muted)",  // of symbols without a colour of their own
      symbolBaseStrokeColor: "var(--muted)",
      symbolStrokeWidth: 2
    },
    title: {color: "var(--ink)", fontSize: 13},
    header: {labelColor: "var(--ink)", titleColor: "var(--ink)"},
    text: {color: "var(--ink)"},
    rule: {color: "var(--muted)"},
    mark: {color: "var(--c1)"},
    range: {category: [1, 2, 3, 4, 5, 6, 7, 8].map((i) => `var(--c${i})`)},
  };
})();

const views = {};
const lists = {};  // of each chart, those that a reader chooses from: {name, options}

/// Of a chart's lists the first option that is about a network: its name is a word of it.
const optionOf = (list, net) => list.options.find((option) => option.split(/[\s,:]+/).includes(net));
const has = (name, net) => (lists[name] || []).some((list) => optionOf(list, net));
const choose = (name, net) => {
  for (const list of lists[name] || [])
    if (optionOf(list, net)) views[name].signal(list.name, optionOf(list, net)).runAsync();
};

/// One chart. `ast`: expressions are interpreted, so that the page may forbid eval. `logLevel` 1: errors.
const draw = async (name, spec) => {
  const place = document.getElementById(`chart-${name}`);
  if (!place) return;
  try {
    const {view} = await vegaEmbed(place, spec, {
      renderer: "svg",
      actions: false,
      ast: true,
      logLevel: 1,
      config: CONFIG,
      tooltip: {theme: "custom", disableDefaultStyle: false}
    });
    views[name] = view;
    lists[name] = (spec.params || []).filter((one) => one.bind && one.bind.options).map((one) => ({
      name: one.name,
      options: one.bind.options
    }));
    view.addEventListener("click", (event, item) => {
      if (item && item.datum && item.datum.run) copyCommands(item.datum.run);
    });
    // Vega names its lists by a word before them and not by a label of their own.
    for (const input of place.querySelectorAll(".vega-bind select, .vega-bind input"))
      input.setAttribute("aria-label", input.closest(".vega-bind").textContent.trim().split("\n")[0].slice(0, 60));
  } catch (error) {
    place.textContent = `This chart could not be drawn: ${error.message}`;
    console.error(error);
  }
};
