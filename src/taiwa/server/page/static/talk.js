// Talking: the message field with its draft, and the answer while it is written, here or by another tab.
import { $, $$, add, ask, attempt, call, failure, fill, here, isNarrow, lost, name, notify, page, put, tell, texts } from "./server.js";
import { files, listenForFiles, sent, setFiles } from "./files.js";
import { options } from "./settings.js";
import { mark, pinned, refresh, show, toEnd } from "./places.js";

const text = $("#text");
const live = $("#live");
let waiting, closed, open, tail, grown; // the parts of the answer that is being written
let pending = null; // what was sent from here, not answered yet
let mine = false; // the turn was begun in this tab
let first = ""; // the message that a conversation begins with, while it is not answered
let before = ""; // the answer that is asked for again
let frame = 0;
let clock = 0;

// --- the message field ------------------------------------------------------------------------------------------------

// A draft belongs to a place: the end of the conversation, or the end of an earlier branch.
const draft = () => `draft:${page.session || "new"}${page.end === page.tip ? "" : `:${page.end}`}`;

export function restoreDraft() {
  if (text) text.value = localStorage.getItem(draft()) ?? "";
}

function keepDraft() {
  if (text.value) localStorage.setItem(draft(), text.value); else localStorage.removeItem(draft());
}

// Drafts go with the name of their conversation, or with it.
export function moveDrafts(from, to) {
  for (const key of Object.keys(localStorage)) {
    if (key !== `draft:${from}` && !key.startsWith(`draft:${from}:`)) continue;
    if (to) localStorage.setItem(`draft:${to}${key.slice(6 + from.length)}`, localStorage.getItem(key));
    localStorage.removeItem(key);
  }
}

export function busy(on) {
  const [stop, send] = [$("#stop"), $("#send")];
  const [shown, gone] = on ? [stop, send] : [send, stop];
  const held = document.activeElement === gone;
  shown.hidden = false;
  gone.hidden = true;
  if (held) shown.focus();
  live?.setAttribute("aria-busy", String(on));
  if (on) delete document.body.dataset.ready; else document.body.dataset.ready = "yes"; // nothing is on its way
}

function clear() {
  pending = { text: text.value, files: files() };
  text.value = "";
  setFiles([]);
  keepDraft();
}

function giveBack() {
  if (!pending) return;
  text.value = [pending.text, text.value].filter(Boolean).join("\n\n"); // and what was written meanwhile
  if (!files().length) setFiles(pending.files);
  keepDraft();
  pending = null;
}

// Which branch is meant, and where the conversation must stand, so that nothing another tab did is lost.
export const branch = () => ({ expected: page.tip, ...(page.end === page.tip ? {} : { parent: page.end }) });

// A conversation goes on with the model of its last answer.
export const goOnWith = (model) => { if ($(`#model [value="${CSS.escape(model)}"]`)) $("#model").value = model; };

export async function begin(body, follows = true) {
  if (body.model) goOnWith(body.model);
  const model = $("#model").value;
  if (follows) toEnd();
  mine = true;
  busy(true);
  try {
    await call("POST", `${here}/turns`, { model, ...branch(), ...body });
  } catch (error) {
    mine = false;
    busy(Boolean(page.run));
    throw error;
  }
}

export const expect = (node) => { before = node; };

export async function send(event) {
  event?.preventDefault();
  const said = text.value.trim();
  const attachments = sent(files());
  if (!said && !attachments.length) return;
  if (!$("#stop").hidden) { // it waits its turn, and can be changed until then
    if (page.session) $("#queued").hidden = false;
    return;
  }
  clear();
  try {
    if (!page.session) return await start(said, attachments);
    if (event) toEnd(); // what waited its turn is not followed by a reader who has left the end
    begun(said, pending.files.map((each) => each.name));
    await begin({ text: said, attachments }, false);
  } catch (error) {
    put(live ?? $("#files"), "");
    giveBack();
    tell(error);
  }
}

const READ = { flag: (field) => field.checked, number: ({ value }) => (value === "" ? undefined : Number(value)), text: ({ value }) => value };
READ.value = ({ value }) => { if (value === "") return undefined; try { return JSON.parse(value); } catch { return value; } };

READ.indexes = (field) => { // without a choice all are searched
  const all = [...field.querySelectorAll("input")];
  const chosen = all.filter((each) => each.checked);
  return (chosen.length ? chosen : all).map((each) => each.value);
};

async function start(said, attachments) {
  const form = $("#begin");
  const app = form.app.value;
  if (!form.reportValidity()) throw new Error("");
  const params = {};
  for (const field of form.querySelectorAll("fieldset:not([disabled]) [data-param]")) params[field.dataset.param] = READ[field.dataset.kind](field);
  await create({ app, params, text: said, attachments, options: options(form) });
}

export async function create(body, panel = "") {
  const made = await call("POST", "/api/conversations", { model: $("#begin").model.value, ...body });
  sessionStorage.setItem(`run:${made.session}`, made.run);
  location.assign(`/c/${encodeURIComponent(made.session)}${panel && `?panel=${panel}`}`);
}

export async function stop() {
  if (page.run) await call("POST", `/api/runs/${page.run}/cancel`, {});
}

// --- the answer -------------------------------------------------------------------------------------------------------

function begun(said, names) {
  const part = (kind, className) => Object.assign(document.createElement(kind), { className, dir: "auto" });
  live.replaceChildren();
  if (names?.length) live.append(Object.assign(part("p", "attached"), { textContent: names.join(", ") }));
  if (said) live.append(Object.assign(part("div", "you"), { textContent: said }));
  waiting = Object.assign(part("p", "thinking"), { textContent: texts.waiting });
  thinksSince = 0;
  closed = part("div", "answer");
  open = part("div", "answer");
  live.append(waiting, closed, open);
  if (pinned()) toEnd();
}

const LONGEST_THOUGHT = 600; // shown
const thoughts = Object.assign(document.createElement("details"), { className: "thoughts" });
thoughts.append(document.createElement("summary"), Object.assign(document.createElement("p"), { dir: "auto" }));
let thinksSince = 0;

// Parts of an answer come faster than a screen can show them: one of them is drawn per frame.
function draw(change) {
  waiting?.remove();
  if (thinksSince) {
    thoughts.open = false;
    thoughts.firstChild.textContent = fill(texts.thought, { n: Math.max(1, Math.round((Date.now() - thinksSince) / 1000)) });
    thinksSince = 0;
  }
  change();
}

// The answer is over, however it ended.
async function ended() {
  cancelAnimationFrame(frame);
  page.run = "";
  mine = false;
  await refresh();
  live.replaceChildren();
  mark("");
  busy(false);
}

const heard = {
  run({ run, said, files: names, parent }) {
    page.run = run;
    first = $(".turn") ? "" : said;
    const heading = $(".bar h1");
    if (heading.textContent === page.session) heading.textContent = said || page.session; // its run was not stored when the page was drawn
    busy(true);
    mark(parent);
    put($("#pending"), "");
    begun(said, names);
  },
  block({ html }) {
    cancelAnimationFrame(frame);
    draw(() => { add(closed, "beforeend", html); put(open, ""); });
  },
  tail({ html, more }) {
    [tail, grown] = html === undefined ? [tail, grown + more] : [html, ""];
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => draw(() => {
      put(open, tail);
      add($$("p, li, h1, h2, h3, h4, td, pre, pre code", open).at(-1) ?? open, "beforeend", grown); // behind the last word
    }));
  },
  thinking(data) {
    const [summary, words] = thoughts.children;
    if (!thinksSince) {
      thinksSince = Date.now();
      words.textContent = "";
      summary.textContent = texts.thinking;
      thoughts.open = true;
      waiting.remove();
      live.insertBefore(thoughts, closed);
    }
    words.textContent = (words.textContent + data.text).slice(-LONGEST_THOUGHT);
  },
  state() { // after the text before it is drawn, which removes what waits
    requestAnimationFrame(() => {
      waiting.textContent = texts.updating;
      if (page.run) live.append(waiting);
    });
  },
  waits({ text, seconds }) { // the model is called again later
    const until = Date.now() + seconds * 1000;
    live.insertBefore(waiting, closed);
    const tell = () => {
      const n = Math.ceil((until - Date.now()) / 1000);
      waiting.textContent = n > 0 ? `${fill(texts.waits, { n })} ${text}` : seconds ? texts.waiting : text;
      clearTimeout(clock);
      if (n > 0) clock = setTimeout(tell, 1000);
    };
    tell();
  },
  notice: (data) => notify(data.text),
  async tip({ tip }) {
    if (tip === page.tip) return;
    if (page.end !== page.tip && !mine) { page.tip = tip; return mark(""); } // an earlier place is read
    cancelAnimationFrame(frame); // the place and what is written for it change at once, in `show`
    await show(tip, tip, true, tip, pinned());
    live.replaceChildren();
  },
  async done() {
    pending = null;
    await ended();
    if (before === page.tip) notify(texts.same);
    before = "";
    await sendQueued();
    notify($("#turns > :last-child .reason p")?.textContent ?? texts.answered, "hidden"); // to a screen reader
  },
  async failed(answer) {
    await ended();
    $("#queued").hidden = true;
    if ($("#pending .unfinished")) { pending = null; return; }
    if (first) pending ??= { text: first, files: [] }; // the turn was not begun
    giveBack();
    notify(failure(answer).message);
  },
  async left() {
    if (mine) return; // it is begun again
    $("#queued").hidden = true;
    await ended();
  },
  async ready() { // all that goes on was told
    $("#lost").hidden = true;
    if (page.run || mine) return;
    if ($("#stop").hidden) return busy(false);
    await ended(); // while there was no connection
    await sendQueued();
  },
  gone({ renamed }) {
    moveDrafts(page.session, renamed);
    location.assign(renamed ? `/c/${encodeURIComponent(renamed)}${location.search}` : "/");
  },
};

async function sendQueued() {
  const waits = !$("#queued").hidden;
  $("#queued").hidden = true;
  if (waits) await send();
}

let source = null;
let queue = Promise.resolve(); // events are handled one after the other, though some fetch

// What goes on is told anew by each connection.
const unknown = () => { page.run = ""; mine = false; };
const followAgain = async () => { await refresh(); follow(); };

// One stream for the visible tab: the answer that is written, and where the conversation stands. It comes back by itself.
export function follow() {
  source?.close();
  if (document.hidden) return;
  unknown();
  const query = new URLSearchParams({ tip: page.tip, run: sessionStorage.getItem(`run:${page.session}`) ?? "" });
  sessionStorage.removeItem(`run:${page.session}`);
  source = new EventSource(`/page/follow/${name}?${query}`);
  for (const [kind, act] of Object.entries(heard)) {
    source.addEventListener(kind, (event) => { const data = JSON.parse(event.data); queue = queue.then(() => attempt(act, followAgain)(data)); });
  }
  source.addEventListener("error", () => {
    unknown();
    lost(source.readyState === EventSource.CLOSED && followAgain);
  });
}

export const leave = () => source.close(); // the present name ends

export function listenToTalk() {
  if (!text) { document.body.dataset.ready = "yes"; return; }
  restoreDraft();
  text.addEventListener("input", keepDraft);
  text.addEventListener("keydown", (event) => {
    // Safari ends a composition before the key that ended it; its key code is 229 as during the composition.
    const phone = matchMedia("(pointer: coarse)").matches; // where Enter makes a line
    if (event.key === "ArrowUp" && !text.value && !event.isComposing) edit($$(".turn:has(footer [data-edit])").at(-1)?.dataset.number);
    if (event.key === "Enter" && !phone && !event.shiftKey && !event.isComposing && event.keyCode !== 229) send(event);
  });
  $("#say, #begin").addEventListener("submit", send);
  $("#stop").addEventListener("click", attempt(stop));
  listenForFiles();
  if (!isNarrow()) text.focus();
  if (!page.session) { document.body.dataset.ready = "yes"; return; }
  follow();
  document.addEventListener("visibilitychange", follow);
}

// --- an earlier message -----------------------------------------------------------------------------------------------

const price = ({ tokens, cost }) => fill(texts.cost, { n: tokens.toLocaleString(), cost: cost ? `${cost} ${texts.currency}` : cost ?? texts.unknown });

export async function edit(number) {
  const dialog = $("#edit");
  const turn = $(`.turn[data-number="${number}"]:has(footer [data-edit])`);
  if (!turn) return;
  const field = $("#edit-text");
  field.value = (await call("GET", `/api/nodes/${turn.dataset.node}`)).user ?? "";
  $("#cost-answer").textContent = $("#cost-replay").textContent = "";
  dialog.returnValue = "cancel";
  dialog.onclose = attempt(async () => {
    const way = dialog.returnValue;
    if (!way || way === "cancel") return; // it is empty after Escape
    const change = { text: field.value, edit: Number(number) };
    if (way === "save") return show((await call("POST", `${here}/rewrite`, { ...change, ...branch() })).node);
    await begin({ ...change, replay: way === "replay" });
  });
  dialog.showModal();
  const found = await call("GET", `${here}/estimate?turn=${number}&node=${page.end}&model=${encodeURIComponent($("#model").value)}`);
  $("#cost-answer").textContent = price(found.answer);
  $("#cost-replay").textContent = price(found.replay);
  $("#edit-replay").hidden = !found.following;
}

export const confirmed = async (link) => (await ask(`${texts.link} ${link.href}`)) && window.open(link.href, "_blank", "noopener,noreferrer");
