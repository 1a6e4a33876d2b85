// Plots of CPU and memory, and strips of the answers of probes, while the page is open. The page keeps the values.

import { age, h, setText } from "/dom.js";

const width = 600; // of the coordinates, not pixels
const height = 100;
const gap = 15000; // a longer time between two samples has no line, in milliseconds
const least = 60000; // the shortest time of a plot
const interval = 4000; // the shortest time between two samples that are kept: a list can come between two samples
const maxSamples = 360; // of a pod
const maxAnswers = 60; // of a probe

// remember adds what pods use to the samples of each pod, by UID.
export function remember(samples, pods) {
  const now = Date.now(),
    known = new Set(pods.map((pod) => pod.uid));
  for (const uid of samples.keys()) if (!known.has(uid)) samples.delete(uid);
  for (const { uid, cpu, memory, limit } of pods) {
    if (memory == null) continue;
    const list = samples.get(uid) ?? [];
    if (now - list[list.length - 1]?.time < interval) continue;
    list.push({ time: now, cpu, memory, limit });
    samples.set(uid, list.slice(-maxSamples));
  }
}

function shape(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// plot makes a plot. The function format makes texts of values, ceiling returns a round value that is not lower.
export function plot(title, format, ceiling) {
  const caption = h("figcaption"),
    top = h("span", { class: "top" }),
    begin = h("span");
  const line = shape("path", { class: "line" }),
    limitLine = shape("path", { class: "limit" });
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" });
  svg.append(shape("path", { class: "grid", d: `M0 0H${width}M0 ${height / 2}H${width}M0 ${height}H${width}` }), limitLine, line);
  const element = h("figure", { class: "plot" }, caption, h("div", null, svg, top), h("p", null, begin, h("span", null, "now")));
  return {
    element,
    // show shows samples {time, value}, oldest first, and a limit, if it is known.
    show(samples, limit) {
      const known = samples.filter((s) => s.value != null);
      if (!known.length) {
        setText(caption, `${title}: not measured yet`);
        svg.setAttribute("aria-label", caption.textContent);
        return;
      }
      const highest = Math.max(...known.map((s) => s.value)),
        isNear = limit && limit < 4 * highest,
        scale = ceiling(isNear ? Math.max(limit, highest) : highest),
        now = Date.now(),
        from = Math.min(known[0].time, now - least);
      const x = (time) => (((time - from) / (now - from)) * width).toFixed(1),
        y = (value) => (height - (value / scale) * height).toFixed(1);
      let path = "",
        before = -Infinity;
      for (const { time, value } of known) {
        path += `${time - before > gap ? "M" : "L"}${x(time)} ${y(value)}h.1`;
        before = time;
      }
      line.setAttribute("d", path);
      limitLine.setAttribute("d", isNear ? `M0 ${y(limit)}H${width}` : "");
      setText(
        caption,
        `${title}: ${format(known[known.length - 1].value)} now, ${format(highest)} at most` +
          (limit ? `, limit ${format(limit)}` : ""),
      );
      svg.setAttribute("aria-label", `${caption.textContent}, in ${age(now - from)}`);
      setText(top, format(scale));
      setText(begin, `${age(now - from)} ago`);
    },
  };
}

// noteAnswers adds the newest answers of the probes of containers to those that the page has seen, by container and probe.
export function noteAnswers(seen, containers) {
  for (const { name, probes } of containers)
    for (const { probe, outcome, time, seconds } of probes ?? []) {
      const key = `${name}/${probe}`,
        list = seen.get(key) ?? [];
      if (list[list.length - 1]?.time !== time) list.push({ outcome, time, ms: seconds * 1000 });
      seen.set(key, list.slice(-maxAnswers));
    }
}

// latency formats milliseconds.
export const latency = (ms) => (ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : ms >= 10 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`);

// strip shows answers of a probe, oldest first: the higher a bar, the longer its latency, on a logarithmic scale of 1 ms to 10 s.
export function strip(answers) {
  const counts = Object.entries(Object.groupBy(answers, (a) => a.outcome)).map(([outcome, list]) => `${list.length} ${outcome}`);
  const label = `Answers that this page has seen since ${new Date(answers[0].time).toLocaleTimeString("en-GB")}: ${counts.join(", ")}, ` +
    `latency ${latency(Math.min(...answers.map((a) => a.ms)))} to ${latency(Math.max(...answers.map((a) => a.ms)))}`;
  const level = (ms) => Math.max(0, Math.min(8, Math.round(Math.log10(Math.max(ms, 1)) * 2)));
  return h(
    "span",
    { class: "strip", role: "img", "aria-label": label, title: label },
    answers.map((a) => h("i", { class: `${a.outcome} l${level(a.ms)}`, title: `${a.outcome}, ${latency(a.ms)}` })),
  );
}
