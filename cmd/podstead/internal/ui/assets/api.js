// Requests to podstead ui. The key is that of this origin: unlike the cookie, no other port gets it.

const keyName = "podstead-key";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// enter exchanges the token in the address for the cookie and the key, and removes it from the address.
export async function enter() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  const response = await fetch("/enter", { method: "POST", body: JSON.stringify({ token }) });
  history.replaceState(null, "", "/#/");
  const body = await response.json();
  if (!response.ok) throw new Refused(response.status, body.error);
  localStorage.setItem(keyName, body.key);
}

// keyProtocol is the key of a WebSocket, which has no headers of its own: a subprotocol.
export const keyProtocol = () => `key.podstead.${localStorage.getItem(keyName) ?? ""}`;

// In texts of podstead ui, times are in the time zone of the browser: minutes east of UTC.
const headers = () => ({
  "Podstead-Key": localStorage.getItem(keyName) ?? "",
  "Podstead-Zone": `${-new Date().getTimezoneOffset()}`,
});

async function request(path, signal, options) {
  const response = await fetch(path, { headers: headers(), signal, ...options });
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Refused(response.status, body.error ?? response.statusText);
}

export const get = async (path, signal) => (await request(path, signal)).json();

export const post = async (path, body) => (await request(path, undefined, { method: "POST", body: JSON.stringify(body) })).json();

// getImage reads an SVG document. XMLHttpRequest parses it: a script cannot, see the content security policy.
export function getImage(path, signal) {
  return new Promise((resolve, reject) => {
    const r = new XMLHttpRequest();
    r.open("GET", path);
    for (const [name, value] of Object.entries(headers())) r.setRequestHeader(name, value);
    r.responseType = "document";
    r.onload = () =>
      r.status === 200 && r.responseXML ? resolve(r.responseXML.documentElement) : reject(new Refused(r.status, "no timeline"));
    r.onerror = () => reject(new Error("no connection"));
    r.onabort = () => reject(new DOMException("aborted", "AbortError"));
    const abort = () => r.abort();
    signal.addEventListener("abort", abort);
    r.onloadend = () => signal.removeEventListener("abort", abort);
    r.send();
  });
}

export const pause = (ms, signal) =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });

// values yields the values of a stream until it ends.
async function* values(path, signal) {
  const response = await request(path, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) yield JSON.parse(line);
    }
  } finally {
    reader.cancel().catch(() => {}); // it has failed, or the response ends
  }
}

// stream passes the values of a stream on until the signal or until receive returns false, and opens it again when it ends. An error is a
// value {gone: error}.
export async function stream(path, signal, receive) {
  const pass = (value) => {
    try {
      return receive(value);
    } catch (error) {
      reportError(error); // the connection is not lost
    }
  };
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 10000)) {
    let gone = new Error("the connection was lost");
    try {
      for await (const value of values(path, signal)) {
        if (signal.aborted || pass(value) === false) return;
        wait = 500;
      }
    } catch (error) {
      gone = error;
    }
    if (signal.aborted) return;
    pass({ gone });
    if (gone.status === 401) return;
    await pause(wait, signal);
  }
}

// repeat calls load, and again some time after it has returned or wake was called, until the signal. It returns wake.
export function repeat(load, ms, signal) {
  let due = false,
    awake = () => {};
  (async () => {
    while (!signal.aborted) {
      due = false;
      await load(signal);
      if (!due) await Promise.race([pause(ms, signal), new Promise((resolve) => (awake = resolve))]);
      if (due) await pause(300, signal); // further changes
    }
  })();
  return () => {
    due = true;
    awake();
  };
}
