// Documents: uploads with their progress, and deletion.
import { $, ask, attempt, call, fill, texts } from "./server.js";

async function upload(form) {
  const progress = $("#progress", form);
  const index = form.dataset.index || form.index.value.trim();
  const body = new FormData();
  for (const file of form.files.files) body.append("files", file);
  progress.textContent = texts.uploading;
  const response = await fetch(`/api/indexes/${encodeURIComponent(index)}/documents`, { method: "POST", body });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) { progress.textContent = ""; throw new Error(answer.error?.message ?? `${response.status} ${response.statusText}`); }
  const refused = answer.refused.map(({ path, why }) => `${path}: ${why}`);
  const events = new EventSource(`/api/runs/${answer.run}/events`);
  events.addEventListener("progress", (event) => {
    const { done, of, path } = JSON.parse(event.data);
    progress.textContent = `${done}/${of} ${path}`;
  });
  const ended = (again) => () => {
    events.close();
    if (refused.length) { progress.textContent = refused.join("\n"); return; }
    if (again) location.assign(`/documents/${encodeURIComponent(answer.index)}`);
  };
  events.addEventListener("indexed", ended(true));
  events.addEventListener("error", (event) => { if (event.data) progress.textContent = JSON.parse(event.data).error.message; ended(false)(); });
}

export function listenToDocuments() {
  const form = $("#upload");
  form?.addEventListener("submit", (event) => { event.preventDefault(); attempt(upload)(form); });
  document.addEventListener("click", attempt(async (event) => {
    const path = event.target.closest("[data-remove]")?.dataset.remove;
    if (!path || !(await ask(fill(texts.remove, { name: path })))) return;
    await call("DELETE", `/api/indexes/${encodeURIComponent(form.dataset.index)}/documents/${path.split("/").map(encodeURIComponent).join("/")}`);
    location.reload();
  }));
}
