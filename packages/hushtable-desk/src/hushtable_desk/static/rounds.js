"use strict";
// Sends the forms of the page of a round, and says how it went.
const outcome = document.getElementById("outcome");

function sayOutcome(lines, failed) {
  outcome.replaceChildren(...lines.map((line) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = line;
    return paragraph;
  }));
  outcome.classList.toggle("stay", failed);
  outcome.hidden = false;
  outcome.scrollIntoView({ block: "nearest" });
}

async function contentOf(form) {
  const content = { compared: [] };
  for (const [name, value] of new FormData(form)) {
    if (value instanceof File) content[name] = await value.text();
    else if (name === "compared") content.compared.push(value);
    else content[name] = value === "yes" ? true : value;
  }
  return content;
}

async function send(form) {
  const buttons = document.querySelectorAll("form[data-post] button");
  buttons.forEach((button) => { button.disabled = true; });
  sayOutcome([outcome.dataset.wait], false);
  try {
    const response = await fetch(form.dataset.post, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(await contentOf(form)),
    });
    const text = await response.text();
    if (!response.ok) {
      sayOutcome([response.headers.get("Content-Type") === "application/json" ? JSON.parse(text).error : text], true);
      return;
    }
    const answer = JSON.parse(text);
    sessionStorage.setItem("outcome", JSON.stringify(answer.words || []));
    location.assign(answer.go || location.href);
  } catch {
    sayOutcome([outcome.dataset.lost], true);
  } finally {
    form.reset(); // no keys stay in the page
    buttons.forEach((button) => { button.disabled = false; });
  }
}

document.addEventListener("submit", (event) => {
  if (event.target.dataset.post) {
    event.preventDefault();
    send(event.target);
  }
});

const before = JSON.parse(sessionStorage.getItem("outcome") || "[]");
sessionStorage.removeItem("outcome");
if (before.length) sayOutcome(before, false);
