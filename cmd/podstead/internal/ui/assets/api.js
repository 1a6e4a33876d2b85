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
  history.replaceState(null, "", "/#/");
  const response = await fetch("/enter", { method: "POST", body: JSON.stringify({ token }) });
  if (response.ok) localStorage.setItem(keyName, (await response.json()).key);
}

export async function request(path, signal) {
  const headers = { "Podstead-Key": localStorage.getItem(keyName) ?? "" };
  const response = await fetch(path, { headers, signal });
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Refused(response.status, body.error ?? response.statusText);
}

export const get = async (path, signal) => (await request(path, signal)).json();

// getImage reads an SVG document. XMLHttpRequest parses it: a script cannot, see the content security policy.
export function getImage(path, signal) {
  return new Promise((resolve, reject) => {
    const r = new XMLHttpRequest();
    r.open("GET", path);
    r.setRequestHeader("Podstead-Key", localStorage.getItem(keyName) ?? "");
    r.responseType = "document";
    r.onload = () =>
      r.status === 200 && r.responseXML ? resolve(r.responseXML.documentElement) : reject(new Refused(r.status, "no timeline"));
    r.onerror = () => reject(new Error("no connection"));
    r.onabort = () => reject(new DOMException("aborted", "AbortError"));
    signal.addEventListener("abort", () => r.abort());
    r.send();
  });
}

export const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

// stream passes the values of a stream on until the signal, and opens it again when it ends. An error is a value {gone: error}. Without a
// path, the function path returns the next one.
export async function stream(path, signal, receive) {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 10000)) {
    try {
      const response = await request(path, signal);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        wait = 500;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) if (!signal.aborted && receive(JSON.parse(line)) === false) return;
      }
      if (!signal.aborted) receive({ gone: new Error("the connection was lost") });
    } catch (error) {
      if (signal.aborted) return;
      receive({ gone: error });
      if (error.status === 401) return;
    }
    await pause(wait, signal);
  }
}
