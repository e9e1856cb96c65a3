// The page: actions go to the server's own API; HTML comes rendered and escaped from the server, and only from there.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const policy = window.trustedTypes ? trustedTypes.createPolicy("taiwa", { createHTML: (html) => html }) : { createHTML: (html) => html };
const put = (element, html) => { element.innerHTML = policy.createHTML(html); };
const { session } = document.body.dataset;
const texts = JSON.parse(document.body.dataset.texts);
const text = $("#text");
const live = $("#live");
let at = document.body.dataset.at;
let events = null; // the stream of the run that is shown
let run = ""; // its id

// --- the server -------------------------------------------------------------------------------------------------------

async function call(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error?.message ?? `${response.status} ${response.statusText}`);
  return answer;
}

async function html(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.text();
}

function notify(message) {
  const line = document.createElement("p");
  line.textContent = message;
  $("#notices").append(line);
  setTimeout(() => line.remove(), 8000);
}

const attempt = (action) => async (...given) => {
  try { await action(...given); } catch (error) { notify(error.message); }
};

// --- talking ----------------------------------------------------------------------------------------------------------

const draft = `draft:${session || "new"}`;
const here = () => `/api/conversations/${encodeURIComponent(session)}`;

function busy(on) {
  $("#stop").hidden = !on;
  $("#send").hidden = on;
  live?.setAttribute("aria-busy", String(on));
}

async function begin(body) {
  const started = await call("POST", `${here()}/turns`, body);
  follow(started.run, body.text ?? "");
}

function follow(id, said) {
  run = id;
  busy(true);
  put(live, "");
  if (said) {
    const mine = document.createElement("div");
    mine.className = "you";
    mine.dir = "auto";
    mine.textContent = said;
    live.append(mine);
  }
  const waiting = Object.assign(document.createElement("p"), { className: "thinking", textContent: texts.waiting });
  const closed = Object.assign(document.createElement("div"), { className: "answer", dir: "auto" });
  const open = Object.assign(document.createElement("div"), { className: "answer", dir: "auto" });
  live.append(waiting, closed, open);
  live.scrollIntoView({ block: "end" });
  events = new EventSource(`/page/runs/${id}`);
  const on = (name, act) => events.addEventListener(name, (event) => act(JSON.parse(event.data)));
  on("block", (data) => { waiting.remove(); closed.insertAdjacentHTML("beforeend", policy.createHTML(data.html)); });
  on("tail", (data) => { waiting.remove(); put(open, data.html); live.scrollTop = live.scrollHeight; });
  on("reset", () => { put(closed, ""); put(open, ""); });
  on("thinking", (data) => { waiting.textContent = data.text; });
  on("notice", (data) => notify(data.text));
  on("done", (data) => { events.close(); location.assign(`/c/${encodeURIComponent(data.session)}`); });
  on("failed", (data) => { events.close(); busy(false); waiting.remove(); notify(data.text); if (!text.value) text.value = said; });
}

async function send(event) {
  event?.preventDefault();
  const said = text.value.trim();
  if (!said) return;
  localStorage.removeItem(draft);
  text.value = "";
  if (!session) return start(said);
  try {
    await begin(document.body.dataset.behind ? { text: said, parent: at } : { text: said });
  } catch (error) {
    text.value = said;
    notify(error.message);
  }
}

async function start(said) {
  const form = new FormData($("#begin"));
  const params = Object.fromEntries([...form].filter(([name, value]) => name.startsWith("p.") && value !== "").map(([name, value]) => [name.slice(2), value]));
  try {
    const made = await call("POST", "/api/conversations", { app: form.get("app"), model: form.get("model") || null, params, text: said });
    location.assign(`/c/${encodeURIComponent(made.session)}`);
  } catch (error) {
    text.value = said;
    notify(error.message);
  }
}

if (text) {
  text.value = localStorage.getItem(draft) ?? "";
  text.addEventListener("input", () => localStorage.setItem(draft, text.value));
  text.addEventListener("keydown", (event) => {
    // Safari ends a composition before the key that ended it; its key code is 229 as during the composition.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) send(event);
  });
  $("#say, #begin").addEventListener("submit", send);
  $("#stop").addEventListener("click", attempt(() => call("POST", `/api/runs/${run}/cancel`, {})));
  if (document.body.dataset.run) follow(document.body.dataset.run, document.body.dataset.said);
  if (!matchMedia("(max-width: 60rem)").matches) text.focus();
}

// --- places: turns, branches, the state -------------------------------------------------------------------------------

const view = (name) => `/c/${encodeURIComponent(session)}?at=${name}&panel=${$("[role=tab][aria-selected=true]").id.slice(4)}`;

async function select(name, keepSide = false) {
  at = name;
  for (const turn of $$(".turn")) turn.classList.toggle("selected", turn.dataset.node === name);
  $(`#n-${name}`)?.scrollIntoView({ block: "nearest" });
  if (keepSide) return;
  const panel = $("[role=tab][aria-selected=true]").id.slice(4);
  const inside = $("#side").contains(document.activeElement) && document.activeElement.getAttribute("role");
  put($("#side"), await html(`/page/side/${encodeURIComponent(session)}?at=${name}&panel=${panel}&end=${document.body.dataset.at}`));
  if (inside) $(`#side [role=${inside}][tabindex="0"], #side [role=${inside}]:not([tabindex="-1"])`)?.focus();
}

const go = async (name) => location.assign(view((await call("GET", `${here()}/end?node=${name}`)).node));

function edit(number) {
  const dialog = $("#edit");
  const turn = $(`.turn[data-number="${number}"]:has(.you)`);
  const count = $$(".turn:has(.you)").length;
  $("#edit-text").value = $(".you", turn).textContent;
  $("#edit-replay").hidden = Number($$(".turn:has(.you)").at(-1).dataset.number) === Number(number) || !count;
  dialog.returnValue = "cancel";
  dialog.onclose = attempt(async () => {
    if (dialog.returnValue === "cancel") return;
    await begin({ text: $("#edit-text").value, edit: Number(number), replay: dialog.returnValue === "replay" });
  });
  dialog.showModal();
}

// Between the last value that was right and the first that was wrong lies the turn that is looked for.
let bounds = null;

function bisect(verdict) {
  const values = $$(".history li");
  if (verdict === undefined) bounds = { right: -1, wrong: values.length };
  else bounds[verdict] = bounds.middle;
  const found = bounds.wrong - bounds.right < 2;
  const say = $("#bisect p");
  $("#bisect").hidden = false;
  for (const button of $$("#bisect button")) button.hidden = found;
  if (found) {
    const first = values[bounds.wrong];
    say.textContent = first ? texts.since.replace("{n}", first.dataset.turn) : texts.never;
    return first && select(first.dataset.node, true);
  }
  bounds.middle = Math.floor((bounds.right + bounds.wrong) / 2);
  const { dataset, children } = values[bounds.middle];
  say.textContent = texts.after.replace("{n}", dataset.turn).replace("{value}", children[1].textContent);
  return undefined;
}

const acts = {
  bisect: () => bisect(),
  keys: () => $("#keys").showModal(),
  undo: async () => { await call("POST", `${here()}/undo`, {}); location.assign(`/c/${encodeURIComponent(session)}`); },
  redo: async () => { await call("POST", `${here()}/redo`, {}); location.assign(`/c/${encodeURIComponent(session)}`); },
  retry: () => begin({ retry: true }),
  resume: async () => {
    const started = await call("POST", `${here()}/resume`, {});
    $("#interrupted button").hidden = true;
    follow(started.run, "");
  },
  fork: async () => {
    const name = prompt(texts.name);
    if (name) location.assign(`/c/${encodeURIComponent((await call("POST", `${here()}/fork`, { node: at, name })).session)}`);
  },
  verify: async () => {
    const badge = $("#badge");
    badge.textContent = texts.checking;
    const found = await call("GET", `${here()}/verify`);
    badge.className = found.verified ? "badge good" : "badge bad";
    badge.textContent = found.verified ? texts.verified.replace("{n}", found.nodes) : found.problem;
  },
};

document.addEventListener("click", attempt(async (event) => {
  const link = event.target.closest("a[data-confirm]");
  if (link && !confirm(`${texts.link} ${link.href}`)) return event.preventDefault();
  const target = event.target.closest("[data-act], [data-go], [data-select], [data-edit], [data-copy], [data-why], [data-bisect], [data-toggle], [role=tab]");
  if (!target) return;
  const { act, go: there, select: name, edit: number, why, toggle } = target.dataset;
  if (act) await acts[act]();
  else if (there) await go(there);
  else if (name) await select(name);
  else if (number) edit(number);
  else if (target.dataset.bisect) await bisect(target.dataset.bisect);
  else if (why) put($("#why"), await html(`/page/why/${encodeURIComponent(session)}?at=${at}&path=${encodeURIComponent(why)}`));
  else if ("copy" in target.dataset) {
    await navigator.clipboard.writeText((await call("GET", `/api/nodes/${target.closest(".turn").dataset.node}`)).answer ?? "");
    notify(texts.copied);
  } else if (toggle) target.setAttribute("aria-expanded", String($(`#${toggle}`).classList.toggle("open")));
  else if (target.role === "tab" || target.getAttribute("role") === "tab") tab(target);
}));

function tab(chosen) {
  for (const each of $$("[role=tab]")) {
    const on = each === chosen;
    each.setAttribute("aria-selected", String(on));
    each.tabIndex = on ? 0 : -1;
    $(`#panel-${each.id.slice(4)}`).hidden = !on;
  }
  chosen.focus();
}

document.addEventListener("submit", attempt(async (event) => {
  const form = event.target;
  if (form.id === "compare") {
    event.preventDefault();
    put($("#difference"), await html(`/page/difference/${encodeURIComponent(session)}?at=${at}&other=${encodeURIComponent(form.other.value)}`));
  } else if (form.id === "set") {
    event.preventDefault();
    await call("POST", `${here()}/state`, { path: form.path.value, value: JSON.parse(form.value.value) });
    location.assign(`/c/${encodeURIComponent(session)}`);
  }
}));

document.addEventListener("change", attempt(async (event) => {
  if (event.target.id === "app") {
    for (const part of $$("[data-app]")) part.hidden = part.disabled = part.dataset.app !== event.target.value;
  } else if (event.target.id === "language") {
    await call("POST", "/page/language", { language: event.target.value });
    location.reload();
  }
  if (event.target.id === "scrub") {
    const turns = $$(".turn");
    const turn = turns[turns.length - 1 - (Number(event.target.max) - Number(event.target.value))];
    if (turn) { await select(turn.dataset.node); $("#scrub").focus(); }
  }
}));

// --- keys -------------------------------------------------------------------------------------------------------------

document.addEventListener("keydown", attempt(async (event) => {
  const item = event.target.closest?.("[role=treeitem], [role=tab]");
  if (item && ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End", "Enter", " "].includes(event.key)) {
    event.preventDefault();
    const role = item.getAttribute("role");
    const all = $$(`[role=${role}]`);
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const next = event.key === "Home" ? all[0] : event.key === "End" ? all.at(-1) : all[all.indexOf(item) + (step ?? 0)];
    if (!step && (event.key === "Enter" || event.key === " ")) return item.click();
    if (next && role === "tab") return tab(next);
    if (next) { item.tabIndex = -1; next.tabIndex = 0; next.focus(); }
    return;
  }
  if (event.key === "Escape" && event.target === text) return text.blur();
  if (event.target.closest?.("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const turns = $$(".turn");
  const index = turns.findIndex((turn) => turn.dataset.node === at);
  const keys = {
    "?": acts.keys,
    "/": () => text?.focus(),
    n: () => location.assign("/"),
    j: () => turns[index + 1] && select(turns[index + 1].dataset.node),
    k: () => turns[index - 1] && select(turns[index - 1].dataset.node),
    "[": () => $(`#n-${at} .siblings button:first-child`)?.click(),
    "]": () => $(`#n-${at} .siblings button:last-child`)?.click(),
    e: () => edit(turns[index].dataset.number),
    r: acts.retry,
    u: acts.undo,
    U: acts.redo,
    f: acts.fork,
    v: acts.verify,
    s: () => tab($("#tab-state")),
    t: () => tab($("#tab-tree")),
    d: () => tab($("#tab-turn")),
    b: () => tab($("#tab-bill")),
  };
  if (keys[event.key] && (session || "?/n".includes(event.key))) { event.preventDefault(); await keys[event.key](); }
}));

$("#transcript")?.scrollTo({ top: $("#transcript").scrollHeight, behavior: "instant" });
if (!document.body.dataset.run) document.body.dataset.ready = "yes"; // else it loads again when the answer is whole
