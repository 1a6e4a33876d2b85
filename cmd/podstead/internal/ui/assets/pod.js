// A pod: why it is in its state, its timeline, its last exits and its events.

import { actionsOf, buttonOf } from "/action.js";
import { get, repeat } from "/api.js";
import { bytes, clock, command, h, heading, isName, logLink, renderer, setText, zone } from "/dom.js";
import { latency, noteAnswers, plot, strip } from "/plot.js";
import { terminalOf } from "/terminal.js";
import { timelineOf } from "/timeline.js";

const refreshInterval = 15000;
const maxRows = 200; // of the table of events
const maxCauses = 5; // that are shown at first

export function podView(name) {
  const state = h("span", { class: "pill" });
  const error = h("p", { class: "notice", role: "alert", hidden: true });
  const headline = h("div"),
    containers = h("ul", { class: "containers" }),
    causes = h("div"),
    exits = h("div"),
    rows = h("tbody"),
    more = h("p", { class: "note" });
  const chosen = h(
    "div",
    { class: "chosen", role: "status" },
    h(
      "p",
      { class: "note" },
      "Click a bar, a tick or a line to see its events and log lines, or use the arrow keys. The wheel or + and - zoom.",
    ),
  );
  const nearby = h("div");
  const answers = new Map(); // of probes
  // A ceiling is the lowest of 1, 2 and 5, with a power of ten, and for bytes a power of two.
  const cpu = plot(
    "CPU",
    (n) => `${Math.ceil(n / 1e6)}m`,
    (n) => [1, 2, 5, 10].map((x) => x * 10 ** Math.max(Math.floor(Math.log10(n || 1)), 7)).find((x) => x >= n),
  );
  const memory = plot("Memory", bytes, (n) => 2 ** Math.ceil(Math.log2(Math.max(n, 2 ** 20))));
  const buttons = h("div", { class: "actions" }),
    result = h("p", { class: "note", role: "status" });
  const follow = h("a", { class: "button", href: logLink([name]) }, "Follow logs");
  let events = [],
    bySeq = new Map(),
    uid = "",
    running = [], // containers
    allowed = false, // to change the pod
    last = null,
    wake = null,
    signal = null;
  const own = (text) => (isName(name) ? command(text) : "");

  // chain returns an event and those that led to it, the newest first, without steps that explain nothing.
  function chain(event) {
    const list = [];
    for (let e = event; e && list.length < 30; e = e.cause > 0 && e.cause < e.seq ? bySeq.get(e.cause) : null) {
      if (e === event || !["ImagePresent", "ContainerCreated"].includes(e.kind)) list.push(e);
    }
    return list;
  }

  const sentence = (e) => [
    h("time", { datetime: e.time }, clock(e.time)),
    " ",
    e.container ? h("b", null, e.container, " ") : "",
    e.message,
  ];

  function chainList(event) {
    const items = chain(event).map((e, i) =>
      h("li", { class: e.type }, i > 0 && h("span", { class: "label" }, "because "), sentence(e)),
    );
    const first = h("ol", { class: "chain" }, items.slice(0, maxCauses));
    if (items.length <= maxCauses) return first;
    return h(
      "div",
      null,
      first,
      h("details", null, h("summary", null, "Earlier causes"), h("ol", { class: "chain" }, items.slice(maxCauses))),
    );
  }

  const showActions = renderer(([wanted, uid]) =>
    buttons.replaceChildren(...wanted.map((action) => buttonOf(action, name, uid, (text) => setText(result, text)))),
  );
  function updateActions() {
    showActions([allowed && uid ? actionsOf(state.textContent) : [], uid]);
    terminal.update(allowed ? uid : "", running);
  }

  function showWhy(pod) {
    setText(state, pod.state);
    running = (pod.containers ?? []).filter((c) => c.state === "Running").map((c) => c.name);
    updateActions();
    state.dataset.healthy = pod.healthy;
    const newest = events.findLast((e) => e.type === "Warning" && e.cause) ?? events.findLast((e) => e.type === "Warning");
    const notes = [pod.file, pod.escalation, pod.notUpdated, pod.notDurable, pod.notRemoved].filter(Boolean);
    showHeadline([pod.text, pod.cause?.hint, ...notes]);
    noteAnswers(answers, pod.containers ?? []);
    showContainers({ text: pod.text, list: pod.containers ?? [] });
    showCauses(newest && !pod.healthy ? chain(newest) : []);
  }

  const showHeadline = renderer(([text, ...hints]) =>
    headline.replaceChildren(
      h("p", { class: "headline" }, text),
      ...hints.filter(Boolean).map((hint) => h("p", { class: "hint" }, hint)),
    ),
  );

  const showCauses = renderer((list) =>
    causes.replaceChildren(...(list.length ? [h("h3", null, "Chain of causes"), chainList(list[0])] : [])),
  );

  const showContainers = renderer(({ text, list }) =>
    containers.replaceChildren(
      ...list.map((c) =>
        h(
          "li",
          { class: c.ready || c.state === "Completed" ? "good" : "bad" },
          h("b", null, c.name),
          c.role === "container" ? "" : h("span", { class: "note" }, ` ${c.role}`),
          ": ",
          c.text,
          c.cause?.text && !c.restartCauses?.length && !text.includes(c.cause.text)
            ? h("p", { class: "note" }, c.cause.text)
            : "",
          (c.restartCauses ?? [])
            .slice(0, 5)
            .map((r) =>
              h(
                "p",
                { class: "note" },
                `${r.count} ${r.count === 1 ? "restart" : "restarts"}, the last at ${clock(r.last)}: ${r.cause.text}`,
              ),
            ),
          (c.probes ?? []).map((p) =>
            h(
              "p",
              { class: "note" },
              `${p.probe} probe: `,
              h("span", { class: `probe ${p.outcome}` }, p.outcome),
              ` at ${clock(p.time)}, took ${latency(p.seconds * 1000)} `,
              strip(answers.get(`${c.name}/${p.probe}`)),
            ),
          ),
        ),
      ),
    ),
  );

  const showExits = renderer((list) =>
    exits.replaceChildren(
      ...(list.length
        ? list.map((x) =>
            h(
              "article",
              { class: "exit" },
              h("h3", null, x.container),
              h(
                "dl",
                null,
                h("dt", null, "Exit code"),
                h("dd", null, `${x.exit.code}${x.exit.signal ? ` (${x.exit.signal})` : ""}`),
                x.exit.reason ? [h("dt", null, "Reason"), h("dd", null, x.exit.reason)] : "",
                x.exit.meaning ? [h("dt", null, "Meaning"), h("dd", null, x.exit.meaning)] : "",
                x.exit.finishedAt ? [h("dt", null, "Exited"), h("dd", null, clock(x.exit.finishedAt))] : "",
                x.evidence.memoryLimitBytes
                  ? [h("dt", null, "Memory limit"), h("dd", null, bytes(x.evidence.memoryLimitBytes))]
                  : "",
                x.evidence.memoryPeakBytes
                  ? [h("dt", null, "Memory peak"), h("dd", null, bytes(x.evidence.memoryPeakBytes))]
                  : "",
                x.evidence.terminationMessage ? [h("dt", null, "Message"), h("dd", null, x.evidence.terminationMessage)] : "",
                x.evidence.probeOutput
                  ? [h("dt", null, `Output of the ${x.evidence.probe} probe`), h("dd", null, x.evidence.probeOutput)]
                  : "",
              ),
              (x.evidence.log ?? []).length
                ? h(
                    "pre",
                    { tabindex: "0", role: "region", "aria-label": `Last log lines of ${x.container}` },
                    x.evidence.log.join("\n"),
                  )
                : h("p", { class: "note" }, x.error ? `The log cannot be read: ${x.error}` : "The run has written nothing."),
              x.command ? command(x.command) : "",
            ),
          )
        : [h("p", { class: "note" }, "No container has exited.")]),
    ),
  );

  const showEvents = renderer((list) => {
    rows.replaceChildren(
      ...list
        .slice(-maxRows)
        .reverse()
        .map((e) =>
          h(
            "tr",
            { class: e.type },
            h("td", null, h("time", { datetime: e.time }, clock(e.time))),
            h("td", null, e.reason),
            h("td", null, e.container ?? ""),
            h("td", null, e.message),
          ),
        ),
    );
    setText(more, list.length > maxRows ? `${list.length - maxRows} older events are not shown.` : "");
  });

  function choose(shape) {
    const { from, to, lane } = shape.dataset;
    const within = (e) =>
      (lane ? e.container === lane : !e.container) && Date.parse(e.time) >= from - 1 && Date.parse(e.time) <= +to + 1;
    const list = events.filter(within);
    chosen.replaceChildren(
      h("p", { class: "headline" }, lane ? `${lane}: ` : "", shape.querySelector("title").textContent),
      list.length ? chainList(list[list.length - 1]) : h("p", { class: "note" }, "Its events are no longer kept."),
      list.length > 1
        ? h(
            "details",
            null,
            h("summary", null, `All ${list.length} events`),
            h(
              "ol",
              { class: "chain" },
              list.slice(-50).map((e) => h("li", { class: e.type }, sentence(e))),
            ),
          )
        : "",
    );
    showLines(lane, Math.min(to, Date.now()));
  }

  // showLines shows the log lines around the end of what was selected.
  async function showLines(lane, at) {
    const place = h("div", { class: "nearby" });
    nearby.replaceChildren(place);
    try {
      const query = new URLSearchParams({ name, uid, container: lane, at: Math.round(at) });
      const { lines, partial } = await get(`/api/around?${query}`, signal);
      const text = (line) => `${clock(line.time)} ${lane ? "" : `${line.container}: `}${line.text}`;
      const label = `Log lines around ${clock(at)}`;
      place.replaceChildren(
        h("h3", null, label),
        lines.length
          ? h("pre", { tabindex: "0", role: "region", "aria-label": label }, lines.map(text).join("\n"))
          : h("p", { class: "note" }, "There are none within a minute."),
        partial ? h("p", { class: "note" }, "Too many lines were written in that time, not all were read.") : "",
      );
    } catch (e) {
      if (!signal.aborted) place.replaceChildren(h("p", { class: "note" }, `The log cannot be read: ${e.message}`));
    }
  }

  const timeline = timelineOf(name, choose),
    terminal = terminalOf(name);

  async function load(mine) {
    try {
      const pod = await get(`/api/pod?name=${encodeURIComponent(name)}`, mine);
      events = pod.events;
      uid = pod.uid ?? "";
      bySeq = new Map(events.map((e) => [e.seq, e]));
      showWhy(pod);
      showExits(pod.exits);
      showEvents(events);
      await timeline.load(mine);
      error.hidden = true;
    } catch (e) {
      if (mine.aborted) return;
      error.hidden = false;
      setText(error, e.message);
    }
  }

  return {
    title: name,
    element: h(
      "div",
      null,
      h(
        "div",
        { class: "bar" },
        heading(name, " ", state),
        h("span", { class: "gap" }),
        buttons,
        follow,
      ),
      result,
      error,
      h("section", { "aria-labelledby": "why" }, h("h2", { id: "why" }, "Why"), headline, containers, causes, own(`podstead why ${name}`)),
      h(
        "section",
        { "aria-labelledby": "timeline" },
        h("div", { class: "bar" }, h("h2", { id: "timeline" }, "Timeline"), h("span", { class: "gap" }), timeline.controls),
        timeline.picture,
        chosen,
        nearby,
        own(`podstead why ${name} -o svg > ${name}.svg`),
      ),
      h(
        "section",
        { "aria-labelledby": "usage" },
        h("h2", { id: "usage" }, "CPU and memory"),
        h("div", { class: "meters" }, cpu.element, memory.element),
        h("p", { class: "note" }, "Measured while this page is open, every 5 seconds."),
        own(`podstead top ${name}`),
      ),
      terminal.element,
      h("section", { "aria-labelledby": "exits" }, h("h2", { id: "exits" }, "Last exit"), exits),
      h(
        "section",
        { "aria-labelledby": "events" },
        h("h2", { id: "events" }, "Events"),
        h(
          "div",
          { class: "wide", tabindex: "0", role: "group", "aria-label": "Table of events" },
          h(
            "table",
            { class: "events" },
            h(
              "thead",
              null,
              h(
                "tr",
                null,
                [`Time (${zone()})`, "Reason", "Container", "Message"].map((title) => h("th", { scope: "col" }, title)),
              ),
            ),
            rows,
          ),
        ),
        more,
        own(`podstead events ${name}`),
      ),
    ),
    // The list changes when something happens to the pod.
    update(pods, { samples, actions }) {
      allowed = actions;
      updateActions();
      const pod = pods.find((p) => p.name === name),
        used = samples.get(pod?.uid) ?? [];
      // A schedule has no containers, its runs do.
      follow.hidden = cpu.element.closest("section").hidden = Boolean(pod?.scheduled);
      cpu.show(used.map(({ time, cpu }) => ({ time, value: cpu })));
      memory.show(
        used.map(({ time, memory }) => ({ time, value: memory })),
        pod?.limit,
      );
      const now = pod ? [pod.uid, pod.status, pod.ready, pod.restarts, pod.need].join() : "";
      if (last !== null && now !== last) wake?.();
      last = now;
    },
    start(s) {
      signal = s;
      wake = repeat(load, refreshInterval, s);
    },
  };
}
