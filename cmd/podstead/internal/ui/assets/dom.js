// Elements and texts. All texts become text nodes: no markup is parsed.

// h makes an element. Properties that begin with "on" are listeners, the others attributes; false, null and undefined leave one out.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// setText and setAttribute change an element only if needed, so that a selection and a screen reader keep their place.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value == null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

// age formats milliseconds like kubectl.
export function age(ms) {
  const s = Math.max(Math.floor(ms / 1000), 0),
    m = Math.floor(s / 60),
    hours = Math.floor(m / 60),
    d = Math.floor(hours / 24);
  if (s < 120) return `${s}s`;
  if (m < 10 && s % 60) return `${m}m${s % 60}s`;
  if (m < 180) return `${m}m`;
  if (hours < 8 && m % 60) return `${hours}h${m % 60}m`;
  if (hours < 48) return `${hours}h`;
  if (d < 8 && hours % 24) return `${d}d${hours % 24}h`;
  if (d < 730) return `${d}d`;
  return `${Math.floor(d / 365)}y`;
}

export const since = (time) => age(Date.now() - Date.parse(time));

// bytes formats a size.
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${unit && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

// clock formats a time of day, with the date if it is not today.
export function clock(time) {
  const t = new Date(time),
    time24 = t.toLocaleTimeString("en-GB");
  return t.toDateString() === new Date().toDateString() ? time24 : `${t.toLocaleDateString("en-CA")} ${time24}`;
}

// zone names the time zone of the browser, which all times have.
export function zone() {
  const minutes = -new Date().getTimezoneOffset(),
    two = (n) => `${Math.floor(n)}`.padStart(2, "0");
  return `UTC${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}

// renderer returns a function that shows a value only if it is another one than before, so that the focus and open details stay.
export function renderer(show) {
  let before;
  return (value) => {
    const text = JSON.stringify(value);
    if (text !== before) show(value);
    before = text;
  };
}

// isName reports whether a pod can have a name (RFC 1123). Only such names may be in commands for a shell.
export const isName = (name) =>
  name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name);

// command shows the command that prints the same in a terminal. A click copies it.
export function command(text) {
  const copy = h("button", { type: "button", class: "copy", "aria-label": `Copy the command ${text}` }, "Copy");
  copy.addEventListener("click", async () => {
    copy.textContent = await navigator.clipboard.writeText(text).then(
      () => "Copied",
      () => "Not copied",
    );
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  return h("p", { class: "command" }, h("span", { class: "label" }, "In a terminal"), h("code", null, text), copy);
}

// heading is the heading of a view, which gets the focus when the view is opened.
export const heading = (...content) => h("h1", { tabindex: "-1" }, ...content);

// link is the address of a view.
export const podLink = (name) => `#/pod/${encodeURIComponent(name)}`;
export const logLink = (names) => `#/logs?${names.map((name) => `pod=${encodeURIComponent(name)}`).join("&")}`;
