// Logs of pods, merged by time.

import { stream } from "/api.js";
import { clock, command, h, heading, isName, logLink, setText, zone } from "/dom.js";

const maxLines = 5000; // that are kept
const colours = 6;

export function logsView(selected) {
  const output = h("div", { class: "log", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Log lines" });
  const note = h("p", { class: "note", role: "status" });
  const filter = h("input", { type: "search", placeholder: "Filter lines (/)", "aria-label": "Filter lines" });
  const follow = h("input", { type: "checkbox", id: "follow", checked: true });
  const choice = h("div", { class: "choice", role: "group", "aria-label": "Pods" });
  const names = new Set(selected);
  let lines = [],
    known = "",
    skipped = 0;

  const matches = (line) =>
    !filter.value || `${line.pod} ${line.container} ${line.text}`.toLowerCase().includes(filter.value.toLowerCase());
  const colour = (pod) => selected.indexOf(pod) % colours;

  const source = ({ pod, container }) => (!container ? pod : selected.length > 1 ? `${pod}/${container}` : container);

  function add(line) {
    line.at = Date.parse(line.time);
    line.element = h(
      "div",
      { class: line.stream, hidden: !matches(line) },
      h("time", { datetime: line.time, title: line.time }, clock(line.time)),
      " ",
      h("span", { class: `source c${colour(line.pod)}` }, source(line)),
      " ",
      h("span", { class: "text" }, line.text),
    );
    let i = lines.length;
    while (i > 0 && lines[i - 1].at > line.at) i--;
    output.insertBefore(line.element, lines[i]?.element ?? null);
    lines.splice(i, 0, line);
  }

  function receive(value) {
    if (value.gone) return setText(note, value.gone.status >= 400 ? value.gone.message : "No connection, reconnecting");
    if (value.ended) {
      setText(note, "All logs are complete.");
      return false;
    }
    value.lines.forEach(add);
    for (const line of lines.splice(0, Math.max(lines.length - maxLines, 0))) {
      line.element.remove();
      skipped++;
    }
    count();
    if (follow.checked) output.scrollTop = output.scrollHeight;
    return true;
  }

  function count() {
    const shown = lines.filter((line) => !line.element.hidden).length;
    setText(
      note,
      `${shown === lines.length ? "" : `${shown} of `}${lines.length} lines` +
        (skipped ? `, ${skipped} older ones are not shown` : ""),
    );
  }

  filter.addEventListener("input", () => {
    for (const line of lines) line.element.hidden = !matches(line);
    count();
    if (follow.checked) output.scrollTop = output.scrollHeight;
  });
  output.addEventListener("scroll", () => {
    follow.checked = output.scrollHeight - output.scrollTop - output.clientHeight < 30;
  });
  follow.addEventListener("change", () => {
    if (follow.checked) output.scrollTop = output.scrollHeight;
  });

  return {
    title: "Logs",
    section: "logs",
    element: h(
      "section",
      { class: "logs" },
      h(
        "div",
        { class: "bar" },
        heading("Logs"),
        note,
        h("span", { class: "gap" }),
        h("label", { for: "follow" }, follow, " Follow"),
        filter,
      ),
      choice,
      output,
      h("p", { class: "note" }, `Times are in ${zone()}.`),
      selected
        .filter(isName)
        .slice(0, 3)
        .map((name) => command(`podstead logs ${name} --tail 200 --follow`)),
    ),
    update(pods) {
      const list = pods.filter((pod) => pod.uid).map((pod) => pod.name);
      if (list.join() === known) return;
      known = list.join();
      const focused = choice.contains(document.activeElement) ? document.activeElement.value : null;
      choice.replaceChildren(
        ...[...new Set([...list, ...names])].map((name) =>
          h(
            "label",
            null,
            h("input", {
              type: "checkbox",
              value: name,
              checked: names.has(name),
              onchange: (event) => {
                if (event.target.checked) names.add(name);
                else names.delete(name);
                location.replace(logLink([...names]));
              },
            }),
            ` ${name}`,
          ),
        ),
      );
      [...choice.querySelectorAll("input")].find((input) => input.value === focused)?.focus();
    },
    start(signal) {
      lines = [];
      skipped = 0;
      output.replaceChildren();
      if (!selected.length) return setText(note, "Select pods.");
      const query = selected.map((name) => `pod=${encodeURIComponent(name)}`).join("&");
      let first = true;
      stream(`/api/logs?tail=200&${query}`, signal, (value) => {
        if (value.gone) first = true;
        else if (first && value.lines) {
          // after a reconnect, the lines are sent again
          lines = [];
          output.replaceChildren();
          first = false;
        }
        return receive(value);
      });
    },
  };
}
