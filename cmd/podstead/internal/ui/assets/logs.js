// Logs of pods, merged by time.

import { get, stream } from "/api.js";
import { clock, command, h, heading, isName, logLink, setText, zone } from "/dom.js";

const maxLines = 5000; // that are kept
// The delay of a line of one stream after one of another, in milliseconds. A line that is older than its source's last one by more was
// written after the clock was set.
const maxLate = 2000;
const colours = 6;

export function logsView(selected) {
  const output = h("div", { class: "log", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Log lines" });
  const note = h("p", { class: "note", role: "status" });
  const filter = h("input", { type: "search", placeholder: "Filter lines (/)", "aria-label": "Filter lines" });
  const search = h("button", { type: "button", class: "copy", title: "Search in all logs that are kept (Enter)" }, "Search past logs");
  const back = h("button", { type: "button", class: "copy", hidden: true }, "Show new lines");
  const notes = h("ul", { class: "note", hidden: true });
  const commands = h("div");
  const follow = h("input", { type: "checkbox", id: "follow", checked: true });
  const choice = h("div", { class: "choice", role: "group", "aria-label": "Pods" });
  const names = new Set(selected);
  let lines = [],
    known = "",
    skipped = 0,
    found = null, // the result of a search; null: new lines are shown
    view = null, // the signal of the view
    live = null; // the AbortController of the stream, or of a search

  const matches = (line) =>
    !filter.value || `${line.pod} ${line.container} ${line.text}`.toLowerCase().includes(filter.value.toLowerCase());
  const colour = (pod) => selected.indexOf(pod) % colours;

  const source = ({ pod, container }) => (!container ? pod : selected.length > 1 ? `${pod}/${container}` : container);

  const isSetBack = (before, line) =>
    before.pod === line.pod && before.container === line.container && before.at - line.at > maxLate;

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
    while (i > 0 && lines[i - 1].at > line.at && !isSetBack(lines[i - 1], line)) i--;
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
    const missing = found ? found.count - lines.length : skipped;
    setText(
      note,
      `${shown === lines.length ? "" : `${shown} of `}${lines.length} ${lines.length === 1 ? "line" : "lines"}` +
        (found ? ` with “${found.text}”` : "") +
        (missing ? `, ${missing} older ones are not shown` : ""),
    );
  }

  // begin ends the stream or the search before, and removes its lines.
  function begin() {
    live?.abort();
    live = new AbortController();
    lines = [];
    skipped = 0;
    output.replaceChildren();
    return AbortSignal.any([view, live.signal]);
  }

  function showCommands(more) {
    const names = selected.filter(isName).slice(0, 3);
    commands.replaceChildren(...names.map((name) => command(`podstead logs ${name} ${more}`)));
  }

  async function searchPast(text) {
    if (!text || !selected.length) return filter.focus();
    const signal = begin();
    found = { text, count: 0, complete: false };
    back.hidden = false;
    notes.hidden = true;
    setText(note, "Searching");
    showCommands(/^[ -~]+$/.test(text) ? `--grep '${text.replaceAll("'", "'\\''")}'` : "--grep TEXT");
    try {
      const query = new URLSearchParams([...selected.map((name) => ["pod", name]), ["text", text]]);
      const result = await get(`/api/search?${query}`, signal);
      found.complete = true;
      found.count = result.count;
      result.lines.forEach(add);
      notes.hidden = result.notes.length === 0;
      notes.replaceChildren(...result.notes.map((one) => h("li", null, one)));
      count();
      output.scrollTop = output.scrollHeight;
    } catch (e) {
      if (!signal.aborted) setText(note, `The logs could not be searched: ${e.message}`);
    }
  }

  function followNew() {
    const signal = begin();
    found = null;
    back.hidden = notes.hidden = true;
    showCommands("--tail 200 --follow");
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
  }

  search.addEventListener("click", () => searchPast(filter.value));
  back.addEventListener("click", () => {
    followNew();
    filter.focus();
  });
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter") searchPast(filter.value);
  });
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
        back,
        search,
        filter,
      ),
      choice,
      output,
      notes,
      h("p", { class: "note" }, `Times are in ${zone()}.`),
      commands,
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
      view = signal;
      if (!found) followNew();
      else if (!found.complete) searchPast(found.text); // the page was hidden before the result
    },
  };
}
