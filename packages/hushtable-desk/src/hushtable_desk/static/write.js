"use strict";
// A button with data-write sends data-body there, and shows the page again.
for (const button of document.querySelectorAll("button[data-write]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    const answer = await fetch(button.dataset.write, {
      method: "POST",
      headers: {"Content-Type": "application/json"},
      body: button.dataset.body || "{}",
    });
    if (answer.ok) {
      location.reload();
      return;
    }
    const said = document.getElementById("said");
    said.textContent = (await answer.json()).error;
    said.hidden = false;
    button.disabled = false;
  });
}
