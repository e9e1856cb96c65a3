"use strict";
// BLAKE2b of RFC 7693 with a digest of 16 bytes and no key.
const MASK = (1n << 64n) - 1n;
const IV = [0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n];
const SIGMA = ["0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0"].map((row) => [...row].map((digit) => parseInt(digit, 16)));
const turn = (word, bits) => ((word >> bits) | (word << (64n - bits))) & MASK;

function compress(state, block, count, last) {
  const m = Array.from({ length: 16 }, (_, i) => block.getBigUint64(i * 8, true));
  const v = [...state, ...IV];
  v[12] ^= count;
  if (last) v[14] ^= MASK;
  for (let round = 0; round < 12; round += 1) {
    const s = SIGMA[round % 10];
    [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]].forEach(([a, b, c, d], i) => {
      v[a] = (v[a] + v[b] + m[s[2 * i]]) & MASK; v[d] = turn(v[d] ^ v[a], 32n);
      v[c] = (v[c] + v[d]) & MASK; v[b] = turn(v[b] ^ v[c], 24n);
      v[a] = (v[a] + v[b] + m[s[2 * i + 1]]) & MASK; v[d] = turn(v[d] ^ v[a], 16n);
      v[c] = (v[c] + v[d]) & MASK; v[b] = turn(v[b] ^ v[c], 63n);
    });
  }
  return state.map((word, i) => word ^ v[i] ^ v[i + 8]);
}

function digest(text) {
  const bytes = new TextEncoder().encode(text);
  let state = IV.map((word, i) => (i ? word : word ^ 0x01010010n));
  const blocks = Math.max(1, Math.ceil(bytes.length / 128));
  for (let i = 0; i < blocks; i += 1) {
    const block = new Uint8Array(128);
    block.set(bytes.subarray(i * 128, i * 128 + 128));
    state = compress(state, new DataView(block.buffer), BigInt(Math.min((i + 1) * 128, bytes.length)), i === blocks - 1);
  }
  const out = new DataView(new ArrayBuffer(16));
  out.setBigUint64(0, state[0], true);
  out.setBigUint64(8, state[1], true);
  return [...new Uint8Array(out.buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const texts = JSON.parse(document.getElementById("texts").textContent);
const say = (text, values = {}) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const count = ([one, many], n) => say(n === 1 ? one : many, { n });

function problem() {
  const rows = JSON.parse(document.getElementById("records").textContent);
  const shown = new Map([...document.querySelectorAll("[data-node]")].map((each) => [each.dataset.node, each]));
  let parent = null;
  let turns = 0;
  for (const { hash, node, state } of rows) {
    const wrong = (text) => say(text, { node: hash.slice(0, 12) });
    if (digest(node) !== hash) return wrong(texts.record);
    const fields = JSON.parse(node);
    if ((fields.parent ?? null) !== parent) return wrong(texts.parent);
    if (digest(state) !== fields.state_hash) return wrong(texts.state);
    if (fields.kind === "turn") {
      turns += 1;
      const article = shown.get(hash);
      if (!article) return wrong(texts.hidden);
      for (const part of article.querySelectorAll("[data-field]")) {
        if (part.textContent !== (fields[part.dataset.field] ?? "").replaceAll("\0", "\ufffd")) return wrong(texts.text);
      }
      shown.delete(hash);
    }
    parent = hash;
  }
  if (shown.size) return texts.added;
  document.querySelector("[data-state]").textContent = JSON.stringify(JSON.parse(rows.at(-1).state), null, 1);
  document.getElementById("verdict").className = "good";
  document.getElementById("verdict").textContent = say(texts.verified, { turns: count(texts.turns, turns), hashes: count(texts.hashes, rows.length), node: parent });
  return "";
}

const found = problem();
if (found) {
  document.getElementById("verdict").className = "bad";
  document.getElementById("verdict").textContent = say(texts.failed, { problem: found });
}
