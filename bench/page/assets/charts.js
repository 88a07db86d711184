// Draws the charts with Vega-Embed, as SVG. The colours are CSS variables of the page.
"use strict";

const INK = "var(--ink)", MUTED = "var(--muted)";
const TEXT = {labelColor: INK, titleColor: INK, labelFontSize: 12};
const CONFIG = {
  background: "transparent",
  font: "system-ui, sans-serif",
  axis: {
    ...TEXT,
    domainColor: MUTED,
    tickColor: MUTED,
    gridColor: "var(--grid)",
    titleFontSize: 12,
    titleFontWeight: "normal",
    labelLimit: 220
  },
  view: {stroke: "var(--line)"},
  legend: {
    ...TEXT,
    labelLimit: 320,
    orient: "bottom",
    direction: "horizontal",
    columns: {expr: "width > 560 ? 3 : 1"},
    symbolBaseFillColor: MUTED,  // for symbols without a colour of their own
    symbolBaseStrokeColor: MUTED,
    symbolStrokeWidth: 2
  },
  text: {color: INK},
  rule: {color: MUTED},
  mark: {color: "var(--c1)"},
  range: {category: [1, 2, 3, 4, 5, 6, 7, 8].map((i) => `var(--c${i})`)}
};

const views = {};

/// Draws one chart. `ast`: Vega interprets expressions, so that the page may forbid eval. `logLevel` 1: only errors.
const draw = async (name, spec) => {
  const place = byId(`chart-${name}`);
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
    view.addEventListener("click", (event, item) => {
      if (item && item.datum && item.datum.run) copy(item.datum.run);
    });
    // Vega writes a word before each list, but gives the list no label, which screen readers need.
    for (const input of place.querySelectorAll(".vega-bind select, .vega-bind input"))
      input.setAttribute("aria-label", input.closest(".vega-bind").textContent.trim().split("\n")[0].slice(0, 60));
  } catch (error) {
    place.textContent = `This chart could not be drawn: ${error.message}`;
    console.error(error);
  }
};
