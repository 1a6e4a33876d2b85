// The host: disk, memory, the space of images, pulls and updates that wait.

import { get, repeat } from "/api.js";
import { bytes, command, h, heading, podLink, renderer, setText } from "/dom.js";

const refreshInterval = 15000;

function meter(label, used, total, text) {
  const percent = total ? Math.round((used * 100) / total) : 0;
  return h(
    "div",
    { class: "meter" },
    h("h2", null, label),
    h("meter", { min: 0, max: 100, value: percent, high: 85, low: 70, optimum: 0, "aria-label": label }, `${percent}%`),
    h("p", null, text, ` (${percent}%)`),
  );
}

// sections of the view, in their order: what they show, and how.
const sections = [
  [(host) => ({ disk: host.disk, memory: host.memory, diskError: host.diskError }), showMeters],
  [(host) => host.pulls, showPulls],
  [(host) => host.updates, showUpdates],
  [(host) => host.usage ?? null, showUsage],
  [({ name, cpus, load, version }) => ({ name, cpus, load, version }), showHost],
];

function showMeters({ disk, memory, diskError }) {
  const used = memory.total - memory.available;
  return h(
    "div",
    { class: "meters" },
    disk
      ? meter(
          "Disk",
          disk.used,
          disk.size,
          `${bytes(disk.used)} of ${bytes(disk.size)} used on the file system of ${disk.path}`,
        )
      : h("p", { class: "notice" }, diskError),
    memory.total
      ? meter("Memory", used, memory.total, `${bytes(used)} of ${bytes(memory.total)} used`)
      : h("p", { class: "notice" }, "The memory of the host is not known."),
  );
}

function showPulls(pulls) {
  return h(
    "section",
    { "aria-labelledby": "pulls" },
    h("h2", { id: "pulls" }, "Image pulls"),
    pulls.length
      ? h(
          "ul",
          null,
          pulls.map((p) =>
            h(
              "li",
              null,
              h("a", { href: podLink(p.pod) }, p.pod),
              ` ${p.container}: ${p.what}: `,
              `${bytes(p.progress.done)}${p.progress.total ? ` of ${bytes(p.progress.total)}` : ""}`,
            ),
          ),
        )
      : h("p", { class: "note" }, "No image is being pulled."),
  );
}

function showUpdates(updates) {
  return h(
    "section",
    { "aria-labelledby": "updates" },
    h("h2", { id: "updates" }, "Updates that wait"),
    updates.length
      ? h(
          "ul",
          null,
          updates.map((u) => h("li", null, h("a", { href: podLink(u.pod) }, u.pod), ` ${u.reason}: ${u.message}`)),
        )
      : h("p", { class: "note" }, "All pods have the definition of their file."),
    command("podstead get -o wide"),
  );
}

function showUsage(usage) {
  if (!usage) return "";
  return h(
    "section",
    { "aria-labelledby": "usage" },
    h("h2", { id: "usage" }, "Disk usage"),
    h(
      "div",
      { class: "wide", tabindex: "0", role: "group", "aria-label": "Table of the disk usage" },
      h(
        "table",
        null,
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            usage[0].map((title) => h("th", { scope: "col" }, title)),
          ),
        ),
        h(
          "tbody",
          null,
          usage.slice(1).map((row) =>
            h(
              "tr",
              null,
              row.map((text, i) => (i ? h("td", null, text) : h("th", { scope: "row" }, text))),
            ),
          ),
        ),
      ),
    ),
    command("podstead system df"),
  );
}

function showHost({ name, cpus, load, version }) {
  return h(
    "section",
    { "aria-labelledby": "about" },
    h("h2", { id: "about" }, "Host"),
    h(
      "dl",
      null,
      h("dt", null, "Name"),
      h("dd", null, name),
      h("dt", null, "CPUs"),
      h("dd", null, `${cpus}`),
      h("dt", null, "Load (1, 5, 15 minutes)"),
      h("dd", null, load),
      h("dt", null, "Podstead"),
      h("dd", null, version.version),
      h("dt", null, "OCI runtime"),
      h("dd", null, version.runtime),
    ),
    command("podstead version"),
  );
}

export function hostView() {
  const error = h("p", { class: "notice", role: "alert", hidden: true }),
    note = h("p", { class: "note" }, "Measuring the disk usage"),
    body = h("div");
  const parts = sections.map(([select, show]) => {
    const place = h("div");
    body.append(place);
    const render = renderer((value) => place.replaceChildren(show(value)));
    return (host) => render(select(host));
  });

  async function load(signal) {
    try {
      const host = await get("/api/host", signal);
      note.hidden = true;
      for (const render of parts) render(host);
      error.hidden = true;
    } catch (e) {
      if (signal.aborted) return;
      error.hidden = false;
      setText(error, e.message);
    }
  }

  return {
    title: "Host",
    section: "host",
    element: h("section", null, h("div", { class: "bar" }, heading("Host")), error, note, body),
    start(signal) {
      repeat(load, refreshInterval, signal);
    },
  };
}
