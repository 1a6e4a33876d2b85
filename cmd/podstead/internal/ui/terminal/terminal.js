// A shell in a container, in a frame whose policy allows the style elements that xterm.js makes. The messages are those of api/channel: a
// byte for the channel, then data.

import { keyProtocol } from "/api.js";
import { FitAddon } from "/terminal/addon-fit.mjs";
import { bound } from "/terminal/bounds.js";
import { Terminal } from "/terminal/xterm.mjs";

const stdin = 0,
  stdout = 1,
  status = 3,
  resize = 4,
  permit = 5;
const room = 256 * 1024; // bytes of a channel that a receiver keeps
const chunk = 32 * 1024; // the largest message
const maxInput = 1024 * 1024; // bytes that the shell has not read

const parameters = new URLSearchParams(location.search);
const container = parameters.get("container");
const screen = document.getElementById("screen"),
  state = document.getElementById("state"),
  again = document.getElementById("again");
const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = () =>
  dark.matches
    ? { background: "#0d1117", foreground: "#e6edf3", cursor: "#e6edf3", selectionBackground: "#264f78" }
    : { background: "#ffffff", foreground: "#1f2328", cursor: "#1f2328", selectionBackground: "#b6d7ff" };

const terminal = new Terminal({
  cursorBlink: false,
  fontFamily: 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace',
  fontSize: 13,
  logLevel: "off", // errors in what the container writes are none of the page
  minimumContrastRatio: 4.5,
  screenReaderMode: true,
  scrollback: 5000,
  theme: theme(),
});
const fit = new FitAddon();
let session = null; // with input(bytes) and resize(size)

// leave moves the focus out of the terminal, in which Tab is a key of the shell: to the page around the frame.
function leave() {
  terminal.blur();
  window.frameElement?.dispatchEvent(new Event("leave"));
}

// askToLeave makes the browser ask before the page is closed. Browsers keep some keys of shells for themselves, such as Ctrl-W.
const askToLeave = (event) => event.preventDefault();

bound(terminal);
terminal.loadAddon(fit);
terminal.open(screen);
terminal.textarea.setAttribute("aria-describedby", "keys");
terminal.parser.registerOscHandler(8, () => true); // no links: their texts come from the container
terminal.attachCustomKeyEventHandler((event) => {
  if (!event.ctrlKey || event.shiftKey || event.altKey || event.metaKey || event.key !== "m") return true;
  event.preventDefault();
  if (event.type === "keydown") leave();
  return false;
});
const encoder = new TextEncoder();
terminal.onData((text) => session?.input(encoder.encode(text)));
terminal.onBinary((text) => session?.input(Uint8Array.from(text, (c) => c.charCodeAt(0))));
terminal.onResize(({ cols, rows }) => session?.resize({ Width: cols, Height: rows }));
new ResizeObserver(() => fit.fit()).observe(screen);
dark.addEventListener("change", () => (terminal.options.theme = theme()));
again.addEventListener("click", open);

function message(channel, data) {
  const bytes = new Uint8Array(data.length + 1);
  bytes[0] = channel;
  bytes.set(data, 1);
  return bytes;
}

// outcome describes the status of a session, see SessionStatus in package api.
function outcome({ status, reason, message, details }) {
  if (status === "Success") return "The shell has exited with code 0.";
  const causes = new Map((details?.causes ?? []).map((cause) => [cause.reason, cause.message]));
  const help = `podstead debug -it ${parameters.get("pod")} --target ${container}`;
  if (causes.has("StartError")) return `Container ${container} has no shell (sh). To look into it, run: ${help}`;
  if (reason === "NonZeroExitCode") return `The shell has exited with code ${causes.get("ExitCode")}.`;
  return [message, causes.get("Hint")].filter(Boolean).join(". Hint: ");
}

function open() {
  const query = new URLSearchParams(parameters);
  fit.fit();
  query.set("width", terminal.cols);
  query.set("height", terminal.rows);
  const socket = new WebSocket(`ws://${location.host}/api/exec?${query}`, ["v1.flow.channel.podstead", keyProtocol()]);
  socket.binaryType = "arraybuffer";
  let permitted = room, // bytes of input
    waiting = new Uint8Array(), // input that is not permitted yet
    shown = 0, // bytes of output that were not permitted again
    opened = false, // a shell may have been started
    result = "";

  function flush() {
    while (permitted > 0 && waiting.length > 0 && socket.readyState === WebSocket.OPEN) {
      const part = waiting.subarray(0, Math.min(permitted, chunk));
      socket.send(message(stdin, part));
      permitted -= part.length;
      waiting = waiting.subarray(part.length);
    }
  }

  session = {
    input(bytes) {
      if (waiting.length + bytes.length > maxInput) {
        state.textContent = "The input is too large, or the shell does not read it. Some of it was dropped.";
        return;
      }
      const all = new Uint8Array(waiting.length + bytes.length);
      all.set(waiting);
      all.set(bytes, waiting.length);
      waiting = all;
      flush();
    },
    resize(size) {
      if (socket.readyState === WebSocket.OPEN) socket.send(message(resize, encoder.encode(JSON.stringify(size))));
    },
  };

  const receive = {
    [stdout]: (data) =>
      terminal.write(data, () => {
        shown += data.length;
        if (shown < room / 2 || socket.readyState !== WebSocket.OPEN) return;
        const grant = new Uint8Array(5);
        grant[0] = stdout;
        new DataView(grant.buffer).setUint32(1, shown);
        socket.send(message(permit, grant));
        shown = 0;
      }),
    [status]: (data) => (result = outcome(JSON.parse(new TextDecoder().decode(data)))),
    [permit]: (data) => {
      if (data[0] !== stdin) return;
      permitted += new DataView(data.buffer, data.byteOffset).getUint32(1);
      flush();
    },
  };
  socket.onmessage = ({ data }) => {
    const bytes = new Uint8Array(data);
    receive[bytes[0]]?.(bytes.subarray(1));
  };
  socket.onopen = () => {
    opened = true;
    addEventListener("beforeunload", askToLeave);
    state.textContent = `Shell in container ${container}`;
    session.resize({ Width: terminal.cols, Height: terminal.rows }); // it may have changed since the request
  };
  socket.onclose = () => {
    session = null;
    removeEventListener("beforeunload", askToLeave);
    terminal.options.disableStdin = true;
    const lost = opened ? "The connection was lost. The shell and its processes are killed." : "Cannot connect to podstead ui.";
    state.textContent = result || lost;
    again.hidden = false;
    if (document.hasFocus()) again.focus();
  };
  again.hidden = true;
  state.textContent = "Connecting";
  terminal.options.disableStdin = false;
  terminal.reset();
  terminal.focus();
}

document.title = `Terminal of container ${container}`;
terminal.textarea.setAttribute("aria-label", document.title);
open();
