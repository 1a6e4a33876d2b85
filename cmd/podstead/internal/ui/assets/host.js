// The host: disk, memory, the space of images, pulls and updates that wait.

import { get } from "/api.js";
import { bytes, command, h, heading, podLink, setText } from "/dom.js";

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

export function hostView() {
  const error = h("p", { class: "notice", role: "alert", hidden: true }),
    body = h("div", null, h("p", { class: "note" }, "Measuring the disk usage"));

  function show(host) {
    const { disk, memory } = host;
    body.replaceChildren(
      h(
        "div",
        { class: "meters" },
        disk
          ? meter(
              "Disk",
              disk.used,
              disk.size,
              `${bytes(disk.used)} of ${bytes(disk.size)} used on the file system of ${disk.path}`,
            )
          : h("p", { class: "notice" }, host.diskError),
        meter(
          "Memory",
          memory.total - memory.available,
          memory.total,
          `${bytes(memory.total - memory.available)} of ${bytes(memory.total)} used`,
        ),
      ),
      h(
        "section",
        { "aria-labelledby": "pulls" },
        h("h2", { id: "pulls" }, "Image pulls"),
        host.pulls.length
          ? h(
              "ul",
              null,
              host.pulls.map((p) =>
                h(
                  "li",
                  null,
                  h("a", { href: podLink(p.pod) }, p.pod),
                  ` ${p.container}: `,
                  p.progress.archive ?? "",
                  ` ${bytes(p.progress.done)}${p.progress.total ? ` of ${bytes(p.progress.total)}` : ""}`,
                ),
              ),
            )
          : h("p", { class: "note" }, "No image is being pulled."),
      ),
      h(
        "section",
        { "aria-labelledby": "updates" },
        h("h2", { id: "updates" }, "Updates that wait"),
        host.updates.length
          ? h(
              "ul",
              null,
              host.updates.map((u) => h("li", null, h("a", { href: podLink(u.pod) }, u.pod), ` ${u.reason}: ${u.message}`)),
            )
          : h("p", { class: "note" }, "All pods have the definition of their file."),
        command("podstead get -o wide"),
      ),
      host.usage
        ? h(
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
                    host.usage[0].map((title) => h("th", { scope: "col" }, title)),
                  ),
                ),
                h(
                  "tbody",
                  null,
                  host.usage.slice(1).map((row) =>
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
          )
        : "",
      h(
        "section",
        { "aria-labelledby": "about" },
        h("h2", { id: "about" }, "Host"),
        h(
          "dl",
          null,
          h("dt", null, "Name"),
          h("dd", null, host.name),
          h("dt", null, "CPUs"),
          h("dd", null, `${host.cpus}`),
          h("dt", null, "Load (1, 5, 15 minutes)"),
          h("dd", null, host.load),
          h("dt", null, "Podstead"),
          h("dd", null, host.version.version),
          h("dt", null, "OCI runtime"),
          h("dd", null, host.version.runtime),
        ),
        command("podstead version"),
      ),
    );
  }

  return {
    title: "Host",
    section: "host",
    element: h("section", null, h("div", { class: "bar" }, heading("Host")), error, body),
    start(signal) {
      const load = async () => {
        try {
          show(await get("/api/host", signal));
          error.hidden = true;
        } catch (e) {
          if (signal.aborted) return;
          error.hidden = false;
          setText(error, e.message);
        }
      };
      load();
      const timer = setInterval(load, refreshInterval);
      signal.addEventListener("abort", () => clearInterval(timer));
    },
  };
}
