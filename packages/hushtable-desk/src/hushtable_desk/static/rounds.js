// Sends the forms of a round; on desk.js.
"use strict";

async function contentOf(form) {
  const content = {compared: []};
  for (const [name, value] of new FormData(form)) {
    if (value instanceof File) content[name] = await value.text();
    else if (name === "compared") content.compared.push(value);
    else content[name] = value === "yes" ? true : value;
  }
  return content;
}

for (const form of all("form[data-post]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const buttons = all("form[data-post] button");
    buttons.forEach((button) => { button.disabled = true; });
    say(main.dataset.wait, true);
    const said = await send(form.dataset.post, await contentOf(form));
    form.reset(); // no keys stay in the page
    buttons.forEach((button) => { button.disabled = false; });
    if (!said) return;
    sessionStorage.setItem("done", (said.words ?? []).join(" "));
    location.assign(said.go ?? location.href);
  });
}

const done = sessionStorage.getItem("done");
sessionStorage.removeItem("done");
if (done) say(done, true);
