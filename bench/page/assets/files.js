// The result files that the page was made from, unpacked and handed out.
"use strict";
{
  document.querySelectorAll("button[data-file]").forEach((button) => {
    button.addEventListener("click", async () => {
      const content = await unpacked(`file-${button.dataset.file}`).blob();
      const url = URL.createObjectURL(new Blob([content], {type: "application/json"}));
      make("a", {href: url, download: button.dataset.name}).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
      say(`${button.dataset.name}: ${content.size} bytes`);
    });
  });
}
