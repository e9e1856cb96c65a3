// The inspector: parts that are loaded when they are opened, and what is known of a token.
import { $, $$, attempt, html, put } from "./server.js";
import { begin } from "./talk.js";

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
