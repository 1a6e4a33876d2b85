// The list of pods, those that need a person first.

import { age, bytes, command, h, heading, logLink, podLink, setAttribute, setText, since } from "/dom.js";

const columns = ["Pod", "State", "Ready", "Restarts", "CPU", "Memory", "Age"];
const maxLogs = 20; // pods whose logs can be merged
const needs = ["failing", "noticed", "moving", "well", "over"];

// A line keeps its elements while it is shown, so that the focus stays.
function line(name) {
  const cell = (label, ...children) => h("td", { role: "cell", "data-label": label }, ...children);
  const link = h("a", { href: podLink(name) }, name);
  const check = h("input", { type: "checkbox", "aria-label": `Select ${name} for logs`, value: name });
  const pill = h("span", { class: "pill" }),
    why = h("p", { class: "why" });
  const ready = cell("Ready"),
    restarts = cell("Restarts"),
    cpu = cell("CPU"),
    memory = cell("Memory"),
    created = cell("Age");
  const row = h(
    "tr",
    { role: "row" },
    h("td", { role: "cell", class: "select" }, check),
    h("th", { role: "rowheader", scope: "row" }, link, why),
    cell("State", pill),
    ready,
    restarts,
    cpu,
    memory,
    created,
  );
  return {
    row,
    check,
    link,
    update(pod) {
      setAttribute(row, "class", needs[pod.need]);
      setText(pill, pod.status);
      setText(why, pod.need < 3 ? pod.text : "");
      setText(ready, pod.ready);
      setText(restarts, pod.lastRestart ? `${pod.restarts} (${since(pod.lastRestart)} ago)` : `${pod.restarts}`);
      setAttribute(restarts, "title", pod.lastRestart ? `Last restart: ${new Date(pod.lastRestart).toLocaleString()}` : null);
      setText(cpu, pod.cpu == null ? "–" : `${Math.ceil(pod.cpu / 1e6)}m`);
      setText(memory, pod.memory == null ? "–" : bytes(pod.memory) + (pod.limit ? ` of ${bytes(pod.limit)}` : ""));
      setText(created, pod.created ? age(Date.now() - Date.parse(pod.created)) : "–");
    },
  };
}

export function podsView() {
  const lines = new Map(); // by UID and name
  const body = h("tbody", { role: "rowgroup" });
  const summary = h("p", { class: "summary" }, "Loading");
  const filter = h("input", { type: "search", placeholder: "Filter by name or state (/)", "aria-label": "Filter pods" });
  const logs = h("a", { class: "button", href: "#/logs", hidden: true }, "");
  const empty = h(
    "p",
    { class: "notice", hidden: true },
    "No pods. Run ",
    h("code", null, "podstead apply FILE"),
    " to create one.",
  );
  let pods = [];

  function render() {
    const wanted = filter.value.trim().toLowerCase();
    const shown = pods.filter((pod) => `${pod.name} ${pod.status}`.toLowerCase().includes(wanted));
    const focused = document.activeElement;
    const rows = shown.map((pod) => {
      const id = pod.uid + "/" + pod.name;
      if (!lines.has(id)) lines.set(id, line(pod.name));
      lines.get(id).update(pod);
      return lines.get(id).row;
    });
    const known = new Set(pods.map((pod) => pod.uid + "/" + pod.name));
    for (const id of lines.keys()) if (!known.has(id)) lines.delete(id);
    rows.forEach((row, i) => body.children[i] === row || body.insertBefore(row, body.children[i] ?? null));
    while (body.children.length > rows.length) body.lastChild.remove();
    if (focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true });
    const count = (need) => pods.filter((pod) => pod.need === need).length;
    const parts = [`${pods.length} ${pods.length === 1 ? "pod" : "pods"}`];
    if (count(0)) parts.push(`${count(0)} need attention`);
    if (count(1)) parts.push(`${count(1)} restarted within the last hour`);
    if (count(2)) parts.push(`${count(2)} starting or stopping`);
    if (pods.length && !count(0) && !count(1) && !count(2)) parts.push("all are healthy");
    if (shown.length !== pods.length) parts.push(`${shown.length} shown`);
    setText(summary, parts.join(", "));
    empty.hidden = pods.length > 0;
    table.hidden = pods.length === 0;
    select();
  }

  function select() {
    const selected = [...lines.values()].filter((l) => l.check.checked).map((l) => l.check.value);
    logs.hidden = selected.length === 0;
    setAttribute(logs, "href", selected.length > maxLogs ? null : logLink(selected));
    setText(logs, selected.length > maxLogs ? `Logs: select at most ${maxLogs} pods` : `Logs of ${selected.length} selected`);
  }

  const table = h(
    "table",
    { role: "table", class: "pods", "aria-label": "Pods", hidden: true },
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        h("th", { role: "columnheader", scope: "col", class: "select" }, h("span", { class: "hidden" }, "Selected")),
        columns.map((name) => h("th", { role: "columnheader", scope: "col" }, name)),
      ),
    ),
    body,
  );
  body.addEventListener("change", select);
  filter.addEventListener("input", render);

  return {
    title: "Pods",
    element: h(
      "section",
      null,
      h("div", { class: "bar" }, heading("Pods"), summary, h("span", { class: "gap" }), logs, filter),
      table,
      empty,
      command("podstead get --watch"),
      command("podstead top"),
    ),
    update(list) {
      pods = list;
      render();
    },
    key(event) {
      const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const links = [...body.querySelectorAll("a")];
      if (!links.length) return;
      event.preventDefault();
      const at = links.indexOf(document.activeElement);
      links[Math.min(Math.max(at + step, 0), links.length - 1)].focus();
    },
    start(signal) {
      const ages = setInterval(render, 1000);
      signal.addEventListener("abort", () => clearInterval(ages));
    },
  };
}
