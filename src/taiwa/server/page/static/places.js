// Places: the window of turns in the transcript, branches, the selected turn and its panel.
import { $, $$, add, ask, attempt, call, fill, here, html, lost, LostError, name, notify, page, put, reload, texts, unfold } from "./server.js";
import { holdsFiles, LARGEST } from "./files.js";
import { why } from "./state.js";
import { follow, leave, moveDrafts, restoreDraft } from "./talk.js";

const MOST = 180; // turns in the document; others are loaded when they are scrolled to
const turns = $("#turns");
const side = $("#side");
export const scroller = $("#transcript");

// Whether the reader is at the end, where all that grows is kept in view.
let atEnd = true;
let top_ = 0; // where the reader was at the last step
export const pinned = () => atEnd;
export function toEnd() {
  atEnd = true;
  scroller.scrollTop = scroller.scrollHeight;
  top_ = scroller.scrollTop;
}

export const shown = () => $$(".turn", turns);
const panelName = () => $("[role=tab][aria-selected=true]").id.slice(4);

// Turns behind the one that the answer follows are dimmed while it is written; "" shows all.
export function mark(parent) {
  const all = shown();
  const from = parent ? all.findIndex((turn) => turn.dataset.node === parent) : -1;
  const leaves = parent && (from >= 0 || all[0]?.dataset.number === "1");
  all.forEach((turn, index) => turn.classList.toggle("left", Boolean(leaves) && index > from));
  $("#behind").hidden = page.end === page.tip || Boolean(page.run);
}

export async function window_(query) {
  return call("GET", `/page/transcript/${name}?${new URLSearchParams({ at: page.at, ...query })}`);
}

// Show a branch to its end: what it shares with the shown one stays in the document.
export async function show(end, at = end, push = true, tip = "", follows = true) {
  const last = $("#later").hidden ? shown().at(-1)?.dataset.node ?? "" : "";
  const found = await window_({ end, have: last });
  page.at = at;
  page.end = end;
  page.tip = tip || found.tip;
  if (found.keep) {
    const all = shown();
    for (const turn of all.slice(all.findIndex((each) => each.dataset.node === found.keep) + 1)) turn.remove();
    add(turns, "beforeend", found.html);
  } else {
    put(turns, found.html);
    $("#earlier").hidden = !found.earlier;
  }
  $("#later").hidden = true;
  trim("top");
  mark("");
  const badge = $("#badge");
  if (badge.dataset.was) { badge.textContent = badge.dataset.was; badge.className = "badge"; }
  const url = `/c/${name}${end === page.tip ? "" : `?end=${end}`}`;
  if (push && url !== location.pathname + location.search) history.pushState(null, "", url);
  restoreDraft();
  if (follows) toEnd();
  await select(at, follows && at !== end);
}

// Load more of the branch at one end of the document, and let go of it at the other.
let loading = null;
export const more = (way, keep) => (loading ??= loadMore(way, keep).finally(() => { loading = null; }));

async function loadMore(way, keep) {
  const all = shown();
  const edge = way === "earlier" ? all[0] : all.at(-1);
  const found = await window_(way === "earlier" ? { end: page.end, before: edge.dataset.node } : { end: page.end, after: edge.dataset.node });
  const height = scroller.scrollHeight - scroller.scrollTop;
  add(turns, way === "earlier" ? "afterbegin" : "beforeend", found.html);
  $(`#${way}`).hidden = !found[way];
  if (way === "earlier") scroller.scrollTop = scroller.scrollHeight - height;
  if (!keep) trim(way === "earlier" ? "bottom" : "top");
}

// Print the whole conversation, also what was not scrolled to.
export async function print() {
  for (const way of ["earlier", "later"]) while (!$(`#${way}`).hidden) await more(way, true);
  window.print();
}

function trim(side) {
  const all = shown();
  const extra = all.length - MOST;
  if (extra <= 0) return;
  const height = scroller.scrollHeight;
  for (const turn of side === "top" ? all.slice(0, extra) : all.slice(-extra)) turn.remove();
  if (side === "top") scroller.scrollTop -= height - scroller.scrollHeight;
  $(side === "top" ? "#earlier" : "#later").hidden = false;
}

// Select a turn and leave its panel as it is.
export function point(node, follows = true) {
  page.at = node;
  for (const turn of shown()) turn.classList.toggle("selected", turn.dataset.node === node);
  if (follows) $(`#n-${node}`)?.scrollIntoView({ block: "nearest" });
}

export async function select(node, follows) {
  point(node, follows);
  await openPanel(panelName());
}

// The panel is folded away for an app that has nothing to show there, or as the reader left it.
export function fold(folded) {
  document.body.classList.toggle("folded", folded);
  localStorage.setItem("side", folded ? "closed" : "open");
}

let asked = 0;
export async function openPanel(id, focus = false) {
  if (focus) { document.body.classList.remove("folded"); unfold("side"); }
  const inside = side.contains(document.activeElement) ? document.activeElement : null;
  const role = inside?.getAttribute("role");
  const again = focus ? `#tab-${id}` : role ? `[role=${role}][tabindex="0"], [role=${role}]:not([tabindex="-1"])` : inside?.id ? `#${inside.id}` : "";
  const mine = ++asked;
  const got = await html(`/page/panel/${id}/${name}?at=${page.at}&end=${page.end}`);
  if (mine !== asked) return; // another one was asked for meanwhile
  const open = $("#why [data-path]");
  const unfolded = $$(`#panel[data-panel="${id}"][data-at="${page.at}"] > details`, side).map((part) => part.open);
  put(side, got);
  $$("#panel > details", side).forEach((part, index) => { part.open ||= unfolded[index] ?? false; });
  if (open && $("#why")) { $("#why").append(open); await why(open.dataset.path, false); } // of the same value at the place that is shown now
  if (again) $(again, side)?.focus();
}

// The list of conversations, which other tabs, programs and clients of the server change.
let stale = false;
let reading = false;
let listed = 100; // conversations of the list
export async function older() { listed += 100; await readList(); }
// List the conversations with a tag, here and on the next pages; "" lists all.
export async function filter(tag) {
  document.cookie = `taiwa-tag=${encodeURIComponent(tag)}; path=/; samesite=strict`;
  await readList();
}
async function readList() {
  stale = true;
  if (reading) return;
  reading = true;
  try {
    while (stale) {
      stale = false;
      const got = await html(`/page/list?session=${name}&limit=${listed}`);
      const held = document.activeElement.closest("#list :is(a, .tag, .more-of)");
      const { tag, session } = held?.dataset ?? {};
      const again = tag ? `[data-tag="${CSS.escape(tag)}"]` : session ? `[data-session="${CSS.escape(session)}"]` : `[href="${held?.getAttribute("href")}"]`;
      put($("#list"), got);
      const title = $("#list [aria-current] > span")?.lastChild.textContent.trim(); // behind the sign of a pin
      if (title) { $(".bar h1").textContent = title; document.title = `${title} · taiwa`; }
      if (held) $(`#list ${again}`)?.focus();
    }
  } finally {
    reading = false;
  }
}

// Conversations from a file; a page that shows the only one opens.
async function importFrom([file]) {
  if (file.size > LARGEST * 1e6) throw new Error(fill(texts.large, { name: file.name, n: LARGEST }));
  const { sessions } = await call("POST", "/api/import", { text: await file.text() }).catch((error) => {
    if (!(error instanceof LostError)) error.message = `${file.name}: ${error.message}`;
    throw error;
  });
  if (sessions.length === 1) return location.assign(`/c/${encodeURIComponent(sessions[0])}`);
  notify(fill(texts.imported, { n: sessions.length }));
  await readList();
}

export function followList() {
  const picker = $("#imported");
  const take = attempt(importFrom);
  picker.addEventListener("change", async () => { await take(picker.files); picker.value = ""; });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    $("#nav").addEventListener(kind, (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      $("#nav").classList.toggle("dropping", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files);
    });
  }

  let changes = null;
  let last = document.body.dataset.moves;
  const readAgain = attempt(readList, readList);
  const open = () => {
    changes?.close();
    if (document.hidden) return;
    changes = new EventSource(`/api/events?after=${last}`);
    for (const kind of ["conversation", "deleted", "answering", "answered"]) {
      changes.addEventListener(kind, (event) => { last = event.lastEventId || last; readAgain(); });
    }
    changes.addEventListener("error", () => { if (changes.readyState === EventSource.CLOSED) lost(open); });
  };
  open();
  document.addEventListener("visibilitychange", () => { open(); if (!document.hidden) readAgain(); });
}

// Show what is open at the end after a change: a turn that failed or was interrupted, a clarifying question.
export async function refresh() {
  put($("#pending"), page.end === page.tip ? await html(`/page/pending/${name}`) : "");
  countDown();
}

// The seconds before the server of the model takes another request.
function countDown() {
  let most = 0;
  for (const button of $$("#pending [data-until]")) {
    button.dataset.label ??= button.textContent;
    const left = Math.ceil((Number(button.dataset.until) - Date.now()) / 1000);
    button.disabled = left > 0;
    button.textContent = left > 0 ? `${button.dataset.label} (${left} s)` : button.dataset.label;
    most = Math.max(most, left);
  }
  if (most > 0) setTimeout(countDown, 1000);
}

export const go = async (node) => {
  const end = (await call("GET", `${here}/end?node=${node}`)).node;
  await show(end, node);
  if (node !== end) $(`#n-${node}`)?.scrollIntoView({ block: "center" });
};

export async function step(by) {
  const all = shown();
  const index = all.findIndex((turn) => turn.dataset.node === page.at) + by;
  if (index < 0 && !$("#earlier").hidden) { await more("earlier"); return step(by); }
  if (index >= all.length && !$("#later").hidden) { await more("later"); return step(by); }
  if (all[index]) await select(all[index].dataset.node);
}

// The slider may lead to a turn that is not in the document.
export async function scrub(value, most) {
  const all = shown();
  const back = most - value;
  if ($("#later").hidden && back < all.length) await select(all[all.length - 1 - back].dataset.node);
  else await select((await call("GET", `/page/step/${name}?end=${page.end}&back=${back}`)).node);
  $("#scrub")?.focus();
}

// The next turns answer the person who is chosen.
export async function answerPerson(field) {
  try {
    const { node } = await call("POST", `${here}/params`, { person: field.value });
    for (const each of field.options) each.defaultSelected = each.selected;
    await show(node, node, true, node);
  } catch (error) {
    for (const each of field.options) each.selected = each.defaultSelected;
    throw error;
  }
}

export async function fork() {
  const wanted = await ask(texts.name, "");
  if (!wanted) return;
  const { session: made } = await call("POST", `${here}/fork`, { node: page.at, name: wanted.replace(/\s+/g, "-") });
  await call("POST", `${api(made)}/label`, { title: wanted }); // its first words are those of the other one
  location.assign(`/c/${encodeURIComponent(made)}`);
}

// The menu of a row in the list, and what is done with its conversation or with the shown one.
export const meant = (button) => button.closest("#row")?.dataset.session ?? page.session;
const api = (session) => `/api/conversations/${encodeURIComponent(session)}`;

export function openRow({ session, title, tags, pinned, archived }, button) {
  const menu = $("#row");
  Object.assign(menu.dataset, { session, title, tags, pinned, archived });
  for (const link of $$("[data-form]", menu)) link.href = `${api(session)}/export?form=${link.dataset.form}`;
  menu.showModal();
  const { bottom, left } = button.getBoundingClientRect();
  menu.style.top = `${Math.max(0, Math.min(bottom, innerHeight - menu.offsetHeight - 8))}px`;
  menu.style.left = `${Math.max(0, Math.min(left, innerWidth - menu.offsetWidth - 8))}px`;
}

export async function label(session, change) {
  await call("POST", `${api(session)}/label`, change);
  if (session === page.session) reload(); else await readList();
}

export async function rename(session) {
  const wanted = await ask(texts.rename, session);
  if (!wanted || wanted === session) return;
  const isShown = session === page.session;
  if (isShown) leave();
  try {
    const made = (await call("POST", `${api(session)}/rename`, { name: wanted })).session;
    moveDrafts(session, made);
    if (isShown) location.assign(`/c/${encodeURIComponent(made)}`); else await readList();
  } catch (error) { if (isShown) follow(); throw error; }
}

export async function remove(session) {
  const title = $(`#list [href="/c/${encodeURIComponent(session)}"] > span`)?.lastChild.textContent.trim();
  if (!(await ask(fill(texts.delete, { name: title ?? session })))) return;
  moveDrafts(session); // a page that shows it is left at once
  await call("DELETE", api(session));
  if (session === page.session) location.assign("/"); else await readList();
}

export async function verify() {
  const badge = $("#badge");
  badge.dataset.was ??= badge.textContent;
  badge.className = "badge";
  badge.textContent = texts.checking;
  const found = await call("GET", `${here}/verify`).catch((error) => {
    badge.textContent = badge.dataset.was;
    throw error;
  });
  badge.className = found.verified ? "badge good" : "badge bad";
  badge.textContent = found.verified ? `✓ ${fill(texts.verified, { n: found.nodes })}` : `✗ ${fill(texts.broken, { n: found.turn })} · ${found.problem}`;
  badge.title = found.problem || fill(texts.means, { n: found.replayed });
  if (found.verified) notify(badge.title);
  const broken = $(`#n-${found.node}`);
  broken?.classList.add("broken");
  broken?.scrollIntoView({ block: "center" });
}

// Scroll to a word of the selected turn, and mark it; the place that a search leads to.
function showWord(word) {
  const turn = $(`#n-${page.at}`);
  if (!word || !turn) return;
  const walker = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const start = node.data.toLowerCase().indexOf(word.toLowerCase());
    if (start < 0 || start + word.length > node.length) continue;
    const folded = node.parentElement.closest("details");
    if (folded) folded.open = true;
    const range = new Range();
    range.setStart(node, start);
    range.setEnd(node, start + word.length);
    CSS.highlights?.set("found", new Highlight(range));
    scroller.scrollTop += range.getBoundingClientRect().top - scroller.clientHeight / 2;
    return;
  }
}

export function listenToPlaces() {
  if (!scroller) return;
  const kept = localStorage.getItem("side");
  if (kept && !new URLSearchParams(location.search).has("panel")) document.body.classList.toggle("folded", kept === "closed");
  countDown();
  const left = () => ($("#later").hidden ? scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight : Infinity);
  const offer = () => { $("#newest").hidden = left() < 120; };
  scroller.addEventListener("scroll", () => { // a step up leaves the end, however small; what grew meanwhile does not
    if (left() < 2 || scroller.scrollTop < top_ || !$("#later").hidden) atEnd = left() < 2;
    else if (left() < 120) atEnd = true;
    top_ = scroller.scrollTop;
    offer();
  }, { passive: true });
  scroller.addEventListener("wheel", ({ deltaY }) => { if (deltaY < 0 && scroller.scrollTop) atEnd = false; }, { passive: true });
  const growth = new ResizeObserver(() => { if (atEnd) toEnd(); offer(); }); // turns also grow when they are drawn for the first time
  for (const part of [scroller, ...scroller.children]) growth.observe(part);
  toEnd();
  if (page.at !== page.end) $(`#n-${page.at}`)?.scrollIntoView({ block: "nearest" });
  showWord(new URLSearchParams(location.search).get("find"));
  const watch = new IntersectionObserver((seen) => { for (const each of seen) if (each.isIntersecting && scroller.scrollHeight > scroller.clientHeight) attempt(more)(each.target.id); }, { root: scroller, rootMargin: "300px" });
  watch.observe($("#earlier"));
  watch.observe($("#later"));
  window.addEventListener("popstate", attempt(async () => {
    const end = new URLSearchParams(location.search).get("end") ?? page.tip;
    await show(end, end, false);
  }));
}
