// The desk's only script. Every page is complete without it; it sends verdicts and choices.
"use strict";

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const main = find("main");
const table = main?.dataset.table;

function say(words, good = false) {
  const line = find("#said");
  line.textContent = words;
  line.className = good ? "good" : "";
  line.hidden = !words;
}

async function send(address, body) {
  let answer;
  try {
    answer = await fetch(address, {
      method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body),
    });
  } catch {
    say("The desk has ended, or does not answer: nothing was saved just now.");
    return null;
  }
  if (answer.headers.get("Content-Type")?.startsWith("application/json")) {
    const said = await answer.json();
    if (!said.error) return said;
    say(said.error);
  } else say(await answer.text());
  return null;
}

// --- every page ---

// On a phone, the header is one line that scrolls.
find(".top [aria-current]")?.scrollIntoView({block: "nearest", inline: "center"});

find("#who")?.addEventListener("change", (event) => send("/settings", {who: event.target.value}));
find("#language")?.addEventListener("change", async (event) => {
  if (await send("/settings", {language: event.target.value})) location.reload();
});

async function watch(job) {
  const bar = find("progress", job), words = find("span", job);
  job.hidden = false;
  for (;;) {
    let state;
    try {
      state = await (await fetch(job.dataset.job)).json();
    } catch {
      say("The desk has ended, or does not answer.");
      return;
    }
    if (state.error) {
      job.hidden = true;
      say(state.error);
      all("#do-fit").forEach((button) => { button.disabled = false; });
      return;
    }
    if (state.done) {
      location.href = job.dataset.then;
      return;
    }
    if (state.total) [bar.max, bar.value] = [state.total, state.rows];
    else bar.removeAttribute("value");
    words.textContent = state.rows ? state.rows.toLocaleString(document.documentElement.lang) : "";
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
for (const job of all("[data-job]:not([hidden])")) watch(job);

// --- the folder ---

async function drop(file) {
  if (!file) return;
  say(`${file.name} …`, true);
  const answer = await fetch("/files", {
    method: "POST", body: file,
    headers: {"Content-Type": "application/octet-stream", "X-File-Name": encodeURIComponent(file.name)},
  });
  const said = await answer.json();
  if (said.error) say(said.error);
  else location.href = said.address;
}
find("#file")?.addEventListener("change", (event) => drop(event.target.files[0]));
const target = find("#drop");
if (target) {
  for (const kind of ["dragover", "dragleave", "drop"]) {
    target.addEventListener(kind, (event) => {
      event.preventDefault();
      target.classList.toggle("over", kind === "dragover");
      if (kind === "drop") drop(event.dataTransfer.files[0]);
    });
  }
}

// --- a table ---

async function decide(name, value, column = "") {
  if (await send(`${table}/say`, {name, value, column})) {
    sessionStorage.setItem("at", scrollY);
    location.reload();
  }
}
if (sessionStorage.getItem("at")) {
  scrollTo(0, sessionStorage.getItem("at"));
  sessionStorage.removeItem("at");
}
for (const button of all("[data-say]")) {
  const {say: name, value, column} = button.dataset;
  button.addEventListener("click", () => decide(name, value, column));
}
for (const button of all("[data-list]")) {
  button.addEventListener("click", async () => {
    const answer = await send(`${table}/list`, {name: button.dataset.list});
    if (answer) location.href = answer.address;
  });
}
for (const field of all("[data-set]")) {
  field.addEventListener("change", () =>
    decide(field.dataset.set, field.type === "checkbox" ? field.checked : field.value));
}
for (const field of all("[data-add]")) {
  field.addEventListener("change", () => decide(field.dataset.add, field.value));
}
for (const box of all("[data-add-box]")) {
  box.addEventListener("change", () => decide(box.dataset.addBox, box.value));
}
for (const kind of all("[data-kind]")) {
  kind.addEventListener("change", () => kind.value === "drop"
    ? decide("drop", kind.dataset.kind) : decide("kinds", kind.value, kind.dataset.kind));
}
find("#do-fit")?.addEventListener("click", async (event) => {
  event.target.disabled = true;
  say("");
  if (await send(`${table}/fit`, {clean: find("#clean").checked})) watch(find("#job"));
  else event.target.disabled = false;
});
find("#model")?.addEventListener("change", async (event) => {
  const said = event.target.value && await send(`${table}/use`, {model: event.target.value});
  if (said) location.href = said.address;
});

for (const button of all("[data-save]")) {
  button.addEventListener("click", async () => {
    const name = find("#learned-name").value, use = button.dataset.save === "true";
    const said = await send(`${table}/learned/save`, {name, use});
    if (said?.address) location.href = said.address;
    else if (said) say(said.name, true);
  });
}

// A button with data-write sends data-body there, and shows the page again.
for (const button of all("[data-write]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    if (await send(button.dataset.write, JSON.parse(button.dataset.body || "{}"))) location.reload();
    else button.disabled = false;
  });
}

// --- rounds ---

async function contentOf(form) {
  const content = {};
  for (const [name, value] of new FormData(form)) {
    if (value instanceof File) content[name] = await value.text();
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

// --- unusual rows ---

const section = find("#row");
const query = () => Object.fromEntries(new URLSearchParams(main.dataset.search));
const current = () => {
  const head = find("h1[data-number]", section);
  return head ? Number(head.dataset.number) : null;
};
const lines = () => all("#lines li[data-number]");
let busy = false;

function mark(number) {
  for (const line of lines()) {
    if (Number(line.dataset.number) === number) {
      line.setAttribute("aria-current", "true");
      line.scrollIntoView({block: "nearest"});
    } else line.removeAttribute("aria-current");
  }
}

function tag(number, verdict, words) {
  const label = find(`#lines li[data-number="${number}"] .verdict`);
  if (label) [label.className, label.textContent] = [`verdict ${verdict}`, words];
}

async function more() {
  const place = find("#history", section);
  if (!place) return;
  const answer = await fetch(place.dataset.history);
  if (answer.ok && place.isConnected) place.innerHTML = await answer.text();
}

function place(number, html, push = true) {
  section.innerHTML = html;
  more();
  mark(number);
  if (push) {
    const row = number === null ? "" : `/${number}`;
    history.pushState({number}, "", `${table}/rows${row}${main.dataset.search}`);
  }
  section.scrollTop = 0;
  if (section.getBoundingClientRect().top < 0) section.scrollIntoView();
}

async function open(number, push = true) {
  const answer = await fetch(`${table}/rows/${number}`, {headers: {"X-Part": "row"}});
  if (answer.ok) place(number, await answer.text(), push);
  else location.reload();
}

const words = (verdict) => verdict === "" ? "" : (find(`[data-verdict="${verdict}"]`).firstChild.textContent.trim());

async function judge(verdict) {
  const number = current();
  if (number === null || busy) return;
  busy = true;
  const note = find("#note");
  const said = await send(`${table}/rows/${number}/verdict`, {verdict, note: note.value, query: query()});
  busy = false;
  if (!said) return;
  say("");
  note.value = "";
  tag(number, verdict, words(verdict));
  place(said.number, said.html);
}

async function undo() {
  const said = await send(`${table}/undo`, {});
  if (!said) return;
  for (const number of said.undone) {
    const verdict = said.verdicts[number] ?? "";
    tag(number, verdict || "new", words(verdict));
  }
  place(said.number, said.html);
}

async function together(verdict) {
  const note = find("#note");
  const said = await send(`${table}/together`, {verdict, note: note.value, query: query()});
  if (said) location.href = `${table}/rows${main.dataset.search}`;
}

async function known() {
  const number = current();
  if (number === null) return;
  const said = await send(`${table}/rows/${number}/known`, {});
  if (said) location.href = `${table}/rows${said.number === null ? "" : `/${said.number}`}${main.dataset.search}`;
}

async function sort(more) {
  if (await send(`${table}/sort`, {more})) location.href = `${table}/rows${main.dataset.search}`;
}

function step(by) {
  const numbers = lines().map((line) => Number(line.dataset.number));
  const at = numbers.indexOf(current());
  const next = numbers[at < 0 ? 0 : at + by];
  if (next !== undefined) open(next);
}

function change(name, value) {
  const found = new URLSearchParams(main.dataset.search);
  if (value) found.set(name, value);
  else found.delete(name);
  location.href = `${table}/rows${String(found) ? `?${found}` : ""}`;
}

if (section) {
  more();
  history.replaceState({number: current()}, "");
  addEventListener("popstate", (event) => {
    const number = event.state?.number;
    if (number === null || number === undefined) location.reload();
    else open(number, false);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button, a");
    if (!button) return;
    if (button.dataset.verdict) judge(button.dataset.verdict);
    else if (button.dataset.together) together(button.dataset.together);
    else if (button.dataset.known !== undefined) known();
    else if (button.id === "undo") undo();
    else if (button.id === "sort") sort(false);
    else if (button.id === "more") sort(true);
    else if (button.id === "help") find("#keys").showModal();
    else {
      const line = button.closest("#lines li, .alike li, .last");
      const number = button.getAttribute("href")?.match(/\/rows\/(\d+)/);
      if (line && number && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
        event.preventDefault();
        open(Number(number[1]));
      }
    }
  });
  find("#order").addEventListener("change", (event) =>
    change("order", event.target.value === "unusual" ? "" : event.target.value));
  for (const box of all("[data-show]")) {
    box.addEventListener("change", () =>
      change("columns", all("[data-show]:checked").map((one) => one.dataset.show).join("\t")));
  }
  find("#find").addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = await send(`${table}/find`, {text: event.target.text.value});
    const list = find("#results");
    if (!said) return;
    list.hidden = false;
    list.replaceChildren(...said.rows.map(({number, name}) => {
      const link = document.createElement("a");
      link.href = `${table}/rows/${number}${main.dataset.search}`;
      link.textContent = name;
      return link;
    }));
    if (!said.rows.length) list.textContent = "–";
    if (said.rows.length === 1) open(said.rows[0].number);
  });
  const keys = {
    o: () => judge("outlier"), f: () => judge("fine"), s: () => judge("skip"), u: undo,
    n: () => find("#note").focus(), r: () => sort(false), k: known,
    "?": () => find("#keys").showModal(), "/": () => find("#find input").focus(),
    ArrowDown: () => step(1), ArrowUp: () => step(-1), j: () => step(1),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, dialog, summary");
    if (event.key === "Escape" && typing) event.target.blur();
    if (event.key === "Enter" && event.target.id === "note") event.target.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const act = keys[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });
}
