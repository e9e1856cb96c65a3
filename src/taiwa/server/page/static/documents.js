// Documents: uploads of files and folders with their progress and what could not be read, and deletion.
import { $, ask, attempt, call, failure, fill, lost, LostError, PAGE, reload, texts } from "./server.js";

const AT_ONCE = 200; // files of one request
let dropped = [];

// A file with its path below the folder that was chosen or dropped.
const below = (file, path = file.webkitRelativePath || file.name) => ({ file, path });
const picked = (form) => [...dropped, ...[...form.files.files, ...form.folder.files].map((file) => below(file))];

// fetch does not tell how much is sent.
const post = (path, body, sent) => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest();
  request.responseType = "json";
  request.open("POST", path);
  request.setRequestHeader(...PAGE);
  request.upload.onprogress = ({ loaded, total }) => sent(total ? loaded / total : 0);
  request.onerror = () => { lost(); reject(new LostError(texts.lost)); };
  request.onload = () => (request.status < 300 ? resolve(request.response) : reject(failure(request.response, request)));
  request.send(body);
});

async function entries(entry, found) {
  const got = (read) => new Promise((resolve, reject) => read(resolve, reject));
  if (entry.isFile) { found.push(below(await got((...then) => entry.file(...then)), entry.fullPath.slice(1))); return; }
  const reader = entry.createReader();
  for (let some; (some = await got((...then) => reader.readEntries(...then))).length;) for (const each of some) await entries(each, found);
}

async function drop(event) {
  const form = $("#upload");
  const found = [];
  const roots = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean); // they are gone after the first await
  for (const root of roots) await entries(root, found);
  dropped = found;
  count(form);
}

const count = (form) => { const n = picked(form).length; $("#progress").textContent = n ? fill(texts.chosen, { n }) : ""; };

async function upload(form) {
  const bar = $("progress", form);
  const say = $("#progress");
  const index = form.dataset.index || form.index.value.trim();
  const readable = form.files.accept.split(",");
  const refused = [];
  const files = picked(form).filter(({ path }) => readable.some((end) => path.toLowerCase().endsWith(end)) || void refused.push(`${path}: ${texts.unreadable}`));
  if (!files.length) { say.textContent = refused.join("\n") || texts.nothing; return; }
  bar.hidden = false;
  say.textContent = texts.uploading;
  let answer;
  try {
    for (let at = 0; at < files.length; at += AT_ONCE) {
      const body = new FormData();
      const some = files.slice(at, at + AT_ONCE);
      for (const { file, path } of some) body.append("files", file, path);
      answer = await post(`/api/indexes/${encodeURIComponent(index)}/documents`, body, (part) => { bar.value = (at + part * some.length) / files.length; });
      refused.push(...answer.refused.map(({ path, why }) => `${path}: ${why}`));
    }
  } catch (error) { bar.hidden = true; say.textContent = ""; throw error; }
  const show = () => location.assign(`/documents/${encodeURIComponent(answer.index)}`);
  const events = new EventSource(`/api/runs/${answer.run}/events`);
  events.addEventListener("progress", (event) => {
    const { done, of, path } = JSON.parse(event.data);
    bar.value = of ? done / of : 1;
    say.textContent = `${done}/${of} ${path}`;
  });
  events.addEventListener("indexed", () => {
    events.close();
    if (refused.length) sessionStorage.setItem("refused", refused.join("\n"));
    show();
  });
  events.addEventListener("error", (event) => {
    if (event.data) {
      events.close();
      say.textContent = failure(JSON.parse(event.data)).message;
    } else lost(events.readyState === EventSource.CLOSED && show); // it goes on, or the server that read them has ended
  });
}

// What is known of a person, one fact per line; a fact that has no line any more is removed.
async function save(form) {
  const facts = Object.fromEntries(Object.keys(JSON.parse(form.dataset.facts)).map((key) => [key, null]));
  for (const line of form.facts.value.split("\n")) {
    const at = line.search(/[:：]/);
    if (at > 0) facts[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  await call("POST", person(form.dataset.person || form.elements.name.value.trim()), { facts, language: form.language.value });
  reload();
}

const person = (name) => `/api/persons/${encodeURIComponent(name)}`;

export function listenToDocuments() {
  document.addEventListener("submit", (event) => { if ("person" in event.target.dataset) { event.preventDefault(); attempt(save)(event.target); } });
  document.addEventListener("click", attempt(async ({ target }) => {
    const { forget } = target.dataset;
    if (forget && await ask(fill(texts.forget, { name: forget }))) { await call("DELETE", person(forget)); reload(); }
  }));
  const form = $("#upload");
  if (!form) return;
  form.addEventListener("submit", (event) => { event.preventDefault(); attempt(upload)(form); });
  form.addEventListener("change", () => count(form));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    form.addEventListener(kind, (event) => { event.preventDefault(); form.classList.toggle("dropping", kind === "dragover"); if (kind === "drop") attempt(drop)(event); });
  }
  const refused = sessionStorage.getItem("refused");
  if (refused && form.dataset.index) {
    $("#refused").hidden = false;
    $("#refused pre").textContent = refused;
    sessionStorage.removeItem("refused");
  }
  document.addEventListener("click", attempt(async (event) => {
    const path = event.target.closest("[data-remove]")?.dataset.remove;
    if (!path || !(await ask(fill(texts.remove, { name: path })))) return;
    await call("DELETE", `/api/indexes/${encodeURIComponent(form.dataset.index)}/documents/${path.split("/").map(encodeURIComponent).join("/")}`);
    reload();
  }));
}
