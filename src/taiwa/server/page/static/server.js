// What every module uses: the server's own API, its rendered HTML, notices, and questions to the person.
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const policy = window.trustedTypes ? trustedTypes.createPolicy("taiwa", { createHTML: (html) => html }) : { createHTML: (html) => html };
export const put = (element, html) => { element.innerHTML = policy.createHTML(html); };
export const add = (element, where, html) => element.insertAdjacentHTML(where, policy.createHTML(html));
export const texts = JSON.parse(document.body.dataset.texts);
export const fill = (text, values) => Object.entries(values).reduce((now, [name, value]) => now.replace(`{${name}}`, () => value), text);

// The place that is shown: the selected node, the end of the branch in the transcript, and where the conversation stands.
const { session, at, end, tip } = document.body.dataset;
export const page = { session, at, end, tip, run: "" };
export const name = encodeURIComponent(session);
export const here = `/api/conversations/${name}`;

// A server that is not there: one line says so until it answers; then what could not be read is read again, once.
export class LostError extends Error {}
const unread = new Set();
let looking = 0;
export function lost(read) {
  if (read) unread.add(read);
  $("#lost").hidden = false;
  $("#lost").textContent = texts.lost;
  looking ||= setTimeout(look, 1000);
}

async function look() {
  const { ok, status } = await fetch("/v1/models").catch(() => ({}));
  looking = 0;
  if (status === 401) { $("#lost").textContent = texts.gone; return; }
  if (!ok) { looking = setTimeout(look, 1000); return; }
  $("#lost").hidden = true;
  const reads = [...unread];
  unread.clear();
  for (const read of reads) attempt(read, read)();
}

export const PAGE = ["taiwa-page", "1"]; // gets errors in the language of the page
const reach = (path, options) => fetch(path, { ...options, headers: [PAGE, ...(options?.headers ?? [])] }).catch(() => { lost(); throw new LostError(texts.lost); });

export async function call(method, path, body) {
  const options = { method };
  if (body !== undefined) Object.assign(options, { headers: [["content-type", "application/json"]], body: JSON.stringify(body) });
  const response = await reach(path, options);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw failure(answer, response);
  return answer;
}

export const failure = (answer, response) => new Error(answer?.error?.message ?? `${response.status} ${response.statusText}`);

export async function html(path) {
  const response = await reach(path);
  if (!response.ok) throw failure(await response.json().catch(() => ({})), response);
  return response.text();
}

export function notify(message, className = "") {
  const line = Object.assign(document.createElement("p"), { textContent: message, className });
  line.addEventListener("click", () => line.remove());
  $("#notices").append(line);
  setTimeout(() => line.remove(), 8000);
}

// Do something, and say why it fails; what the page reads on its own account is done `again` after a connection that was lost.
export const attempt = (action, again) => async (...given) => {
  try { await action(...given); } catch (error) { tell(error, again); }
};

export function tell(error, again) {
  if (error instanceof LostError) lost(again); else if (error.message) notify(error.message);
}

// Load the page again, with the focus where it is.
export function reload() {
  sessionStorage.setItem("focus", document.activeElement.closest("[id]:is(summary, select, [tabindex])")?.id ?? "");
  location.reload();
}

// On a narrow screen the list and the panel open over the conversation.
export const isNarrow = () => matchMedia("(max-width: 60rem)").matches;
export function unfold(id) {
  if (!isNarrow()) return;
  $(`#${id}`).classList.add("open");
  $(`[data-toggle=${id}]`).ariaExpanded = "true";
}

export async function copyText(text) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else { // over HTTP from another machine
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  notify(texts.copied);
}

// Ask for a text, or with no text given for a yes; null when it is cancelled.
export function ask(title, value) {
  const dialog = $("#ask");
  const field = $("#ask-text");
  $("#ask-title").textContent = title;
  field.hidden = value === undefined;
  field.value = value ?? "";
  dialog.returnValue = "cancel";
  dialog.showModal();
  if (value === undefined) $("#ask-ok").focus(); else field.select();
  return new Promise((resolve) => { dialog.onclose = () => resolve(dialog.returnValue === "ok" ? (field.hidden ? "ok" : field.value.trim()) : null); });
}

document.addEventListener("keydown", (event) => {
  // Enter in the field would press the first button, which cancels.
  if (event.target.id === "ask-text" && event.key === "Enter" && !event.isComposing && event.keyCode !== 229) { event.preventDefault(); $("#ask").close("ok"); }
});
