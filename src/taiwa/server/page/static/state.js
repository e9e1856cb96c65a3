// What is known of a place: why a value is there, since when it is wrong, another value by hand, and how two branches differ.
import { $, $$, attempt, call, fill, here, html, name, page, put, texts } from "./server.js";
import { point, show } from "./places.js";
import { begin, branch } from "./talk.js";

let bounds = null; // between the last value that was right and the first that was wrong lies the turn that is looked for

export async function why(path, follows = true) {
  const value = $(`#why [data-path="${CSS.escape(path)}"] [name=value]`);
  const typed = value && value.value !== value.defaultValue ? value.value : null;
  put($("#why"), await html(`/page/why/${name}?at=${page.at}&end=${page.end}&path=${encodeURIComponent(path)}`));
  const author = $("#set input[name=author]");
  if (author) author.value = localStorage.getItem("author") ?? "";
  if (typed !== null) $("#set [name=value]").value = typed;
  if (follows) $("#why").scrollIntoView({ block: "nearest" });
}

export async function bisect(verdict) {
  const values = $$(".history li");
  if (verdict === undefined) bounds = { right: -1, wrong: values.length };
  else bounds[verdict] = bounds.middle;
  const found = bounds.wrong - bounds.right < 2;
  const say = $("#bisect p");
  $("#bisect").hidden = false;
  for (const button of $$("#bisect button")) button.hidden = found;
  if (found) {
    const first = values[bounds.wrong];
    say.textContent = first ? fill(texts.since, { n: first.dataset.turn }) : texts.never;
    if (first) point(first.dataset.node);
    return;
  }
  bounds.middle = Math.floor((bounds.right + bounds.wrong) / 2);
  const { dataset, children } = values[bounds.middle];
  say.textContent = fill(texts.after, { n: dataset.turn, value: children[1].textContent });
  point(dataset.node);
  $("#bisect button").focus();
}

export async function compare(form) {
  put($("#difference"), await html(`/page/difference/${name}?at=${page.at}&other=${encodeURIComponent(form.other.value)}`));
  $("#difference").scrollIntoView({ block: "nearest" });
}

export async function set(form) {
  const author = form.author.value.trim();
  localStorage.setItem("author", author);
  let value = form.value.value;
  try { value = JSON.parse(value); } catch { /* a text without quotation marks */ }
  const made = await call("POST", `${here}/state`, { path: form.path.value, value, author, ...branch() });
  await show(made.node);
}

// The inspector: parts that are loaded when they are opened, and what is known of a token.
// Answer again with the beginning of an answer and another token; the turn is a branch beside it.
const branchAt = attempt(async (button) => {
  const { answer, number, user } = button.closest(".tokens").dataset;
  const prefix = [...answer].slice(0, Number(button.dataset.branch)).join("") + button.dataset.text;
  await begin({ text: user, edit: Number(number), prefix });
});

export function listenToInspector() {
  document.addEventListener("toggle", attempt(async ({ target }) => {
    const { load } = target.dataset ?? {};
    if (!load || !target.open) return;
    delete target.dataset.load;
    const loaded = $(".loaded", target);
    try { put(loaded, await html(load)); } catch (error) { target.dataset.load = load; loaded.textContent = error.message; }
  }), true); // this event does not bubble
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-branch]");
    if (button) branchAt(button);
    const token = event.target.closest("[data-token]");
    if (!token) return;
    const card = token.closest(".tokens");
    for (const each of $$("[data-token]", card)) each.classList.toggle("selected", each === token);
    for (const each of $$("[data-about]", card)) each.hidden = each.dataset.about !== token.dataset.token;
  });
}
