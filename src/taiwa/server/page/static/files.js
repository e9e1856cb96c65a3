// Files of the message that is being written: from the picker, by drop, and by paste.
import { $, fill, notify, texts } from "./server.js";

const MOST_FILES = 20;
export const LARGEST = 20; // MB; the limits of taiwa.kernel.attachments
let chosen = [];

export const files = () => chosen;

export function setFiles(list) {
  for (const old of chosen) if (old.url && !list.includes(old)) URL.revokeObjectURL(old.url);
  chosen = list;
  $("#files").replaceChildren(...chosen.map(preview));
}

function preview(each) {
  const item = document.createElement("li");
  if (each.url) item.append(Object.assign(document.createElement("img"), { src: each.url, alt: "" }));
  const label = Object.assign(document.createElement("span"), { textContent: each.name, dir: "auto" });
  const drop = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: "×" });
  drop.setAttribute("aria-label", fill(texts.drop, { name: each.name }));
  drop.addEventListener("click", () => { setFiles(chosen.filter((other) => other !== each)); $("#text").focus(); });
  item.append(label, drop);
  return item;
}

const base64 = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

async function take(list) {
  const added = [];
  for (const file of list) {
    if (chosen.length + added.length >= MOST_FILES) { notify(fill(texts.most, { n: MOST_FILES })); break; }
    if (file.size > LARGEST * 1e6) { notify(fill(texts.large, { name: file.name, n: LARGEST })); continue; }
    const url = file.type.startsWith("image/") ? URL.createObjectURL(file) : "";
    try { added.push({ name: file.name, data: await base64(file), url }); } catch { notify(`${file.name}: ${texts.unreadable}`); } // a folder
  }
  setFiles([...chosen, ...added]);
}

export const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");

export const sent = (list) => list.map(({ name, data }) => ({ name, data }));

export function listenForFiles() {
  const picker = $("#picker");
  picker.addEventListener("change", async () => { await take([...picker.files]); picker.value = ""; $("#text").focus(); });
  $("#text").addEventListener("paste", (event) => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length) { event.preventDefault(); take(pasted); }
  });
  const main = $("#main");
  for (const kind of ["dragenter", "dragover"]) main.addEventListener(kind, (event) => { if (holdsFiles(event)) { event.preventDefault(); main.classList.add("dropping"); } });
  for (const kind of ["dragleave", "drop"]) main.addEventListener(kind, (event) => { if (kind === "drop" || event.target === main) main.classList.remove("dropping"); });
  main.addEventListener("drop", (event) => { if (holdsFiles(event)) { event.preventDefault(); take([...event.dataTransfer.files]); } });
}
