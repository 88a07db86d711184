// The result files that the page was made from, unpacked and handed out.
"use strict";
{
  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).blob();
  };
  document.querySelectorAll("button[data-file]").forEach((button) => {
    button.addEventListener("click", async () => {
      const content = await unpack(document.getElementById(`file-${button.dataset.file}`).textContent.trim());
      const url = URL.createObjectURL(new Blob([content], {type: "application/json"}));
      make("a", {href: url, download: button.dataset.name}).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
      say(`${button.dataset.name}: ${content.size} bytes`);
    });
  });
}
