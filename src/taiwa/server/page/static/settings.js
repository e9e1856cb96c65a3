// Settings: of this browser, of the server if it belongs to the reader, and of the next answers of a conversation.
import { $, $$, attempt, call, here, html, notify, put, reload, texts } from "./server.js";
import { show } from "./places.js";

// What the answers of a conversation get; a field that is left empty is not set.
export function options(form) {
  const found = {};
  for (const { type, checked, value, dataset: { optionOf } } of $$("[data-option-of]", form)) {
    if (type === "checkbox") { if (checked) (found[optionOf] ??= []).push(value); } else if (value.trim()) found[optionOf === "type" ? $("#written").value : optionOf] = type === "number" ? Number(value) : value;
  }
  return found;
}

export const serve = async ({ first, remove }) => { await call("POST", "/page/models", { ...(first && { first }), ...(remove && { remove }) }); reload(); };
export const unlock = async ({ server }) => { await call("POST", "/page/keys", { server, remove: true }); reload(); };

export function answers() {
  const dialog = $("#answers");
  dialog.returnValue = "cancel";
  dialog.onclose = attempt(async () => {
    if (dialog.returnValue !== "ok") return;
    const { node } = await call("POST", `${here}/params`, { options: { system: "", temperature: null, max_tokens: null, ...options(dialog) } });
    await show(node, node, true, node);
  });
  dialog.showModal();
}

async function server(form) {
  const { server: { value }, key } = form;
  const named = value.trim();
  if (key.value.trim()) {
    const { untested } = await call("POST", "/page/keys", { server: named, key: key.value.trim() });
    if (untested) notify(texts.untested);
  }
  key.value = "";
  put($("#listed"), await html(`/page/models?server=${encodeURIComponent(named)}`));
}

async function limit({ max_cost }) {
  await call("POST", "/page/limits", { max_cost: max_cost.value });
  notify(texts.set);
}

async function other({ named, dataset: { server } }) {
  await call("POST", "/page/models", { named: named.value, server });
  reload();
}

export const forms = { server, limit, named: other };

export function listenToSettings() {
  const fields = $$("#defaults [data-option-of], #begin .options [data-option-of]:not([type=checkbox])");
  const kept = JSON.parse(localStorage.getItem("defaults") ?? "{}");
  for (const field of fields) field.value ||= kept[field.dataset.optionOf] ?? "";
  if (Object.keys(kept).length && $("#begin .options")) $("#begin .options").open = true;
  $("#defaults")?.addEventListener("input", ({ currentTarget }) => localStorage.setItem("defaults", JSON.stringify(options(currentTarget))));
}
