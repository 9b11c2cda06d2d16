"use strict";
// Only finds streams by name or by what happened, and unfolds everything for paper. The page is complete without it.
const find = document.getElementById("find");
if (find) {
  find.hidden = false;
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    for (const row of document.querySelectorAll(".streams li[data-text]")) {
      const hidden = !row.dataset.text.includes(wanted);
      row.hidden = hidden;
      document.getElementById(row.dataset.of).hidden = hidden;
    }
  });
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => (part.open = true)));
