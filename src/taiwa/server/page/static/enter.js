// The page for a browser without a cookie: the key of the server is exchanged for one.
const form = document.querySelector("#enter");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = JSON.stringify({ key: form.key.value.trim() });
  const response = await fetch("/login", { method: "POST", headers: { "content-type": "application/json" }, body }).catch(() => null);
  if (response?.ok) location.assign(location.pathname === "/login" ? "/" : location.href);
  else document.querySelector("#problem").textContent = response ? form.dataset.wrong : form.dataset.lost;
});
