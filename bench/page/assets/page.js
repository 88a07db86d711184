// What all scripts of the page share. Text of result files reaches the page as text, never as markup.
"use strict";

const dataOf = (id) => {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : null;
};

/// An element with properties and children; strings become text.
const make = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === "") continue;
    if (name in element)
      element[name] = value;
    else
      element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};

/// Three figures, without an exponent: as text.py writes them.
const digits = (value, figures = 3) => {
  if (value === 0) return "0";
  const places = Math.max(0, figures - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 20));
};

/// Bytes that are in the page compressed, as base64.
const unpacked = (id) => {
  const bytes =
      Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
};

const say = (text) => {
  const said = document.getElementById("said");
  said.textContent = text;
  said.classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.classList.remove("shown"), 3500);
};

/// Copies a text, and says so. Where a file's page may not use the clipboard, the older way.
const copy = async (text, what = text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", {value: text, "aria-hidden": "true"});
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say(`Copied: ${what}`);
};

/// Of several commands, each a line, only the first is shown.
const copyCommands = (lines) => {
  const [first, ...others] = lines.split("\n");
  copy(lines, others.length ? `${first}, and ${others.length} more` : first);
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-run]");
  if (button) copyCommands(button.dataset.run);
});
