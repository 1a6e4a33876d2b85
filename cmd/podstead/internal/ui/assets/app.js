// The frame of the page: it opens views, shows the connection, and follows the list of pods for all views.

import { enter, get, Refused, stream } from "/api.js";
import { h, heading, setText } from "/dom.js";
import { hostView } from "/host.js";
import { logsView } from "/logs.js";
import { remember } from "/plot.js";
import { podView } from "/pod.js";
import { podsView } from "/pods.js";

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const announcer = document.getElementById("announcer");
const problem = document.getElementById("problem");

// A page that is hidden asks nothing, but tells podstead ui that it is open.
const aliveInterval = 5 * 60 * 1000;

const state = { pods: null, samples: new Map(), actions: false }; // pods is null: not known yet
let view = null; // with element, and optionally title, update(pods) and start(signal)
let opened = null; // the AbortController of the view
let following = null; // that of the list
let closed = false; // podstead ui has refused the key

function showConnection(name, text) {
  connection.dataset.state = name;
  setText(connection, text);
}

// decode returns the parts of a path. A path that is not valid has none.
function decode(path) {
  try {
    return path.split("/").map(decodeURIComponent);
  } catch {
    return [];
  }
}

function open() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  if (location.hash === "#main" && view) return main.focus();
  const [name, argument] = decode(path);
  const parameters = new URLSearchParams(query ?? "");
  opened?.abort();
  if (name === "pod" && argument) view = podView(argument);
  else if (name === "logs") view = logsView(parameters.getAll("pod"));
  else if (name === "host") view = hostView();
  else view = podsView();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === (view.section ?? "pods")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view.title} · Podstead`;
  main.replaceChildren(view.element);
  main.querySelector("h1")?.focus({ preventScroll: true });
  scrollTo(0, 0);
  start();
}

function start() {
  opened?.abort();
  opened = new AbortController();
  if (state.pods) view.update?.(state.pods, state);
  if (!document.hidden) view.start?.(opened.signal);
}

// announce tells people who do not see the page that pods began or ceased to need a person.
function announce(before, now) {
  if (!before) return;
  const was = new Map(before.map((pod) => [pod.uid + pod.name, pod.need]));
  const changed = now.filter((pod) => (pod.need === 0) !== (was.get(pod.uid + pod.name) === 0));
  if (changed.length)
    announcer.textContent = changed
      .slice(0, 3)
      .map((pod) => pod.text || `${pod.name}: ${pod.status}`)
      .join(" ");
}

function receive(value) {
  if (value.gone instanceof Refused && value.gone.status === 401) {
    closed = true;
    opened?.abort();
    showConnection("gone", "Signed out");
    main.replaceChildren(
      h(
        "section",
        { class: "notice" },
        heading("This page is closed"),
        h(
          "p",
          null,
          "Run ",
          h("code", null, "podstead ui"),
          " and open the URL that it prints. A URL works until its command ends.",
        ),
      ),
    );
  } else if (value.gone) showConnection("gone", "podstead ui does not respond");
  else if (value.lost) showConnection("lost", "Daemon unavailable, reconnecting");
  else if (value.failed) showConnection("lost", value.failed);
  else {
    showConnection("live", "Live");
    announce(state.pods, value.pods);
    state.pods = value.pods;
    remember(state.samples, value.pods);
    state.actions = Boolean(value.actions);
    if (!closed) return view.update?.(value.pods, state);
    closed = false;
    open();
  }
}

function follow() {
  following?.abort();
  if (document.hidden) return;
  following = new AbortController();
  stream("/api/pods", following.signal, receive);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog")) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const go = { 1: "#/", 2: "#/logs", 3: "#/host" }[event.key];
  if (go) location.hash = go;
  else if (event.key === "Escape" && location.hash.startsWith("#/pod/")) location.hash = "#/";
  else if (event.key === "/" && main.querySelector("input[type=search]")) {
    event.preventDefault();
    main.querySelector("input[type=search]").focus();
  } else view.key?.(event);
});

await enter().catch((error) => {
  problem.hidden = false;
  setText(problem, `The URL could not be opened: ${error.message}`);
});
open();
follow();
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload(); // another URL of podstead ui
  else if (closed) follow();
  else open();
});
document.addEventListener("visibilitychange", () => {
  follow();
  if (document.hidden) return opened.abort();
  showConnection("connecting", "Connecting");
  if (!closed) start();
});
setInterval(() => document.hidden && get("/api/alive").catch(() => {}), aliveInterval);
