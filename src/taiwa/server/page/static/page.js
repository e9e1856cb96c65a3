// The page: clicks, forms and keys lead to the actions of its parts. HTML comes rendered and escaped from the server only.
import { $, $$, ask, attempt, call, copyText, here, html, name, page, put, reload, texts, unfold } from "./server.js";
import { begin, confirmed, create, edit, expect, goOnWith, listenToTalk, stop } from "./talk.js";
import { answerPerson, filter, fold, followList, fork, go, label, listenToPlaces, meant, more, older, openPanel, openRow, print, remove, rename, scrub, select, show, step, toEnd, verify } from "./places.js";
import { bisect, compare, listenToInspector, set, why } from "./state.js";
import { answers, forms, listenToSettings, serve, unlock } from "./settings.js";
import { listenToDocuments } from "./documents.js";

const acts = {
  bisect: () => bisect(),
  keys: () => { $("#single").checked = localStorage.getItem("keys") !== "off"; $("#keys").showModal(); },
  attach: () => $("#picker").click(),
  import: () => $("#imported").click(),
  trust: async ({ question }) => { if (await ask(question)) { await call("POST", "/page/trust", { session: page.session }); reload(); } },
  earlier: () => more("earlier"),
  later: () => more("later"),
  latest: () => show(page.tip),
  undo: async () => show((await call("POST", `${here}/undo`, {})).node),
  redo: async () => show((await call("POST", `${here}/redo`, {})).node),
  fold: () => fold(!document.body.classList.contains("folded")),
  tokens: async ({ node }) => {
    await select(node);
    await openPanel("turn", true);
    const part = $("[data-load*='/tokens/']");
    if (part) part.open = true;
  },
  retry: async () => (await ask(texts.again)) && again(Number($$(".turn:has([data-act=again])").at(-1).dataset.number)),
  resume: ({ yes, waiting }) => call("POST", `${here}/resume`, yes ? { approve: yes > 0, waiting } : {}),
  repeat: ({ model, prefix }) => begin({ repeat: true, ...(model && { model }), ...(prefix && { prefix }) }),
  row: openRow,
  older,
  title: async ({ title }, button) => {
    const wanted = await ask(texts.title, button.closest("#row")?.dataset.title ?? title);
    if (wanted !== null) await label(meant(button), { title: wanted });
  },
  tags: async ({ tags }, button) => {
    const wanted = await ask(texts.tags, button.closest("#row")?.dataset.tags ?? tags);
    if (wanted !== null) await label(meant(button), { tags: wanted.split(/[,，、]/).map((tag) => tag.trim()).filter(Boolean) });
  },
  tag: ({ tag }, button) => filter(button.ariaPressed === "true" ? "" : tag),
  label: ({ pinned, archived }, button) => label(meant(button), { pinned: pinned === "1", archived: archived === "1" }),
  rename: (_, button) => rename(meant(button)),
  remove: (_, button) => remove(meant(button)),
  newest: () => ($("#later").hidden ? toEnd() : show(page.end)),
  code: (_, button) => copyText(button.nextElementSibling.textContent),
  fetch: async () => { await call("POST", "/page/models", { fetch: true }); await load($("[data-now]")); },
  use: async ({ model, server }) => { await call("POST", "/page/models", { model, ...(server && { server }) }); reload(); },
  beside: async ({ node }) => {
    put($("#beside div"), await html(`/page/beside/${name}?at=${node}`));
    $("#beside").showModal();
  },
  keep: async ({ node, model }) => {
    $("#beside").close();
    goOnWith(model);
    await show((await call("POST", `${here}/keep`, { node, expected: page.tip })).node);
  },
  again: ({ number, model }) => again(number, model),
  more: async ({ number }) => {
    const { user, answer } = await call("GET", `/api/nodes/${answered(number).dataset.node}`);
    await begin({ text: user ?? "", edit: Number(number), prefix: answer });
  },
  answers, fork, print, serve, unlock, verify,
};

// Close what is open over the page: a menu, or a panel on a narrow screen; return the control that opened it.
function shut() {
  const open = $(".menu[open], nav.open, aside.open");
  if (!open) return null;
  open.open = false;
  open.classList.remove("open");
  const by = open.id ? $(`[data-toggle=${open.id}]`) : $("summary", open);
  if (open.id) by.ariaExpanded = "false";
  return by;
}

async function copy(node) {
  await copyText((await call("GET", `/api/nodes/${node}`)).answer ?? "");
}

const answered = (number) => $(`.turn[data-number="${number}"]:has([data-act=again])`);

async function again(number, model) {
  const other = model ? { model } : {};
  const turn = answered(number);
  expect(turn.dataset.node);
  if (turn === $$(".turn:has([data-act=again])").at(-1) && page.end === page.tip) return begin({ retry: true, ...other });
  await begin({ text: (await call("GET", `/api/nodes/${turn.dataset.node}`)).user ?? "", edit: Number(number), ...other });
}

document.addEventListener("click", attempt(async (event) => {
  const link = event.target.closest("a[data-confirm]");
  if (link) { event.preventDefault(); return confirmed(link); }
  if (event.target.matches("#row, #row a")) $("#row").close(); // beside it, or an export
  const menu = event.target.closest(".menu div");
  const by = event.target.closest(".menu summary, nav, aside, dialog, [data-toggle]") ? null : shut();
  if (menu) by.focus();
  const target = event.target.closest("[data-act], [data-go], [data-select], [data-edit], [data-example], [data-copy], [data-why], [data-bisect], [data-option], [data-toggle], [role=tab]");
  if (!target) return;
  target.closest("#row")?.close();
  const { act, go: there, select: node, edit: number, why: path, toggle, bisect: verdict } = target.dataset;
  if (act) await acts[act](target.dataset, target);
  else if (there) await go(there);
  else if (node) await select(node);
  else if (number) await edit(number);
  else if (target.dataset.example) await create(JSON.parse(target.dataset.example), target.dataset.panel);
  else if (verdict) await bisect(verdict);
  else if (target.dataset.option) { put($("#pending"), ""); await begin({ option: Number(target.dataset.option) }); }
  else if (path) await why(path);
  else if ("copy" in target.dataset) await copy(target.closest(".turn").dataset.node);
  else if (toggle) {
    const part = $(`#${toggle}:not(.open)`);
    shut();
    if (part) unfold(toggle);
    if (part && !event.detail) $("a, [role=tab]:not([tabindex='-1'])", part).focus(); // by a key
  }
  else if (target.getAttribute("role") === "tab") await openPanel(target.id.slice(4), true);
}));

document.addEventListener("submit", attempt(async (event) => {
  const action = { compare, set, ...forms }[event.target.id];
  if (action) { event.preventDefault(); await action(event.target); }
}));

document.addEventListener("change", attempt(async ({ target }) => {
  if (target.name === "app") {
    for (const part of $$("[data-app]")) part.hidden = part.disabled = part.dataset.app !== target.value;
    showParams();
  } else if (target.id === "single") localStorage.setItem("keys", target.checked ? "on" : "off");
  else if (target.id === "language" || target.id === "theme") {
    await call("POST", "/page/look", { [target.id]: target.value });
    reload();
  } else if (target.id === "person") {
    await answerPerson(target);
  } else if (target.id === "scrub") await scrub(Number(target.value), Number(target.max));
}));

// What opens above the message field is in view, and what an app or a collection of documents was chosen for.
const showParams = () => $("[data-app]:not([hidden])")?.scrollIntoView({ block: "nearest" });
if (location.search) showParams();
document.addEventListener("toggle", ({ target }) => { if (target.matches(".options[open]")) target.scrollIntoView({ block: "nearest" }); }, true);

const selected = () => $(`#n-${page.at}`);
const keys = {
  "?": acts.keys,
  "/": () => $("#text")?.focus(),
  g: () => { unfold("nav"); $("#q").focus(); },
  n: () => location.assign("/"),
  a: acts.attach,
};
const placed = {
  j: () => step(1),
  k: () => step(-1),
  "[": () => $(".siblings button:first-child", selected())?.click(),
  "]": () => $(".siblings button:last-child", selected())?.click(),
  e: () => edit(selected().dataset.number),
  c: () => copy(page.at),
  r: acts.retry,
  u: acts.undo,
  U: acts.redo,
  f: fork,
  v: verify,
  s: () => openPanel("state", true),
  t: () => openPanel("tree", true),
  d: () => openPanel("turn", true),
  b: () => openPanel("bill", true),
};

document.addEventListener("keydown", attempt(async (event) => {
  const item = event.target.closest?.("[role=treeitem], [role=tab], .menu summary, .menu div > *, #row > *");
  const role = item?.getAttribute("role");
  const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
  if (item && by) {
    event.preventDefault();
    const menu = item.closest(".menu, #row");
    if (menu) menu.open = true;
    const all = (role ? $$(`[role=${role}]`) : $$(".menu div :is(a, button), #row > :is(a, button)", menu)).filter((each) => each.checkVisibility());
    const next = all[Math.min(Math.max(all.indexOf(item) + by, 0), all.length - 1)];
    if (role === "tab") return openPanel(next.id.slice(4), true);
    if (role) { item.tabIndex = -1; next.tabIndex = 0; }
    return next.focus();
  }
  if (role && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); return item.click(); }
  const opened = event.key === "Escape" && !event.target.closest?.("dialog[open]") && shut();
  if (opened) return opened.focus();
  if (event.key === "Escape" && page.run && !event.target.closest?.("dialog[open]")) return stop();
  if (event.key === "Escape" && event.target.id === "text") return event.target.blur();
  const body = $("#transcript, .start");
  if (body && event.target === document.body && ["PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown", " "].includes(event.key)) { body.tabIndex = -1; body.focus(); } // which then scrolls
  // A closed dialog keeps the focus until a frame is drawn.
  if (event.target.closest?.("dialog[open], :is(input, textarea, select):not(dialog *)") || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key !== "?" && localStorage.getItem("keys") === "off") return;
  const action = keys[event.key] ?? (page.session ? placed[event.key] : undefined);
  if (action) { event.preventDefault(); await action(); }
}));

// The focus of a reader by keyboard: what opened is closed when the focus leaves it, and what had the focus and is gone leaves it to
// what is there now.
let held = null;
let around = [];
document.addEventListener("focusin", ({ target }) => {
  if (!target.closest(".menu[open], nav.open, aside.open, dialog, [data-toggle]")) shut();
  [held, around] = [target.matches(":focus-visible:not(dialog *)") ? target : null, []];
  for (let each = target; (each = each.parentElement);) around.push(each);
});
new MutationObserver(() => {
  if (!held || document.activeElement !== document.body || held.checkVisibility()) return;
  const turn = around.includes($("#turns")) && $(`#n-${page.at}`);
  const part = around.find((each) => each.checkVisibility() && $("a, button, input", each));
  const next = turn ? (held.closest(".siblings") && $(".siblings button:enabled", turn)) || turn : part.contains($("#text")) ? $("#text") : $("a, button, input", part);
  next.focus();
}).observe(document.body, { attributeFilter: ["hidden", "open"], childList: true, subtree: true });

// A part that is loaded at once, and again while something in it goes on.
const load = (part) => attempt(async () => {
  const went = $("[data-again]", part);
  put(part, await html(part.dataset.now));
  if ($("[data-again]", part)) setTimeout(() => load(part), 1000);
  else if (went && !$(".problem", part)) reload();
}, () => load(part))();
$$("[data-now]").forEach((part) => load(part));
listenToDocuments();
listenToInspector();
listenToPlaces();
listenToSettings();
listenToTalk();
followList();
const before_ = sessionStorage.getItem("focus");
sessionStorage.removeItem("focus");
if (before_) $(`#${before_}`)?.focus();
