// Light, dark, or as the system has it. Colours are CSS alone: charts follow by themselves.
"use strict";
{
  const button = document.getElementById("theme");
  const order = ["auto", "light", "dark"];
  let now = "auto";
  const show = () => {
    if (now === "auto")
      delete document.documentElement.dataset.theme;
    else
      document.documentElement.dataset.theme = now;
    button.textContent = `Theme: ${now}`;
  };
  button.addEventListener("click", () => {
    now = order[(order.indexOf(now) + 1) % order.length];
    show();
  });
  button.hidden = false;
  show();
}
