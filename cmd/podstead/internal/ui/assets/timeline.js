// The timeline of a pod: the picture that podstead ui draws, of all times or of the part that is zoomed to. Things in it can be selected.

import { getImage } from "/api.js";
import { h } from "/dom.js";

const minLength = 100; // of a part, in milliseconds
const keyZoom = 1.5;

const identity = (shape) => {
  const classes = [...shape.classList].filter((name) => name !== "selected").join(" ");
  return `${shape.dataset.from} ${shape.dataset.lane} ${classes} ${shape.getAttribute("fill")}`;
};

// timelineOf returns the elements of the timeline of a pod. The function choose gets what was selected.
export function timelineOf(name, choose) {
  const range = h(
    "select",
    { "aria-label": "Time shown in the timeline" },
    [
      ["", "Since the first event"],
      ["24h", "Last 24 hours"],
      ["6h", "Last 6 hours"],
      ["1h", "Last hour"],
      ["10m", "Last 10 minutes"],
    ].map(([value, text]) => h("option", { value }, text)),
  );
  const picture = h("div", {
    class: "timeline",
    tabindex: "0",
    role: "group",
    "aria-label": "Timeline. The arrow keys select what happened, plus and minus zoom, 0 shows all.",
  });
  const button = (text, label, click) => h("button", { type: "button", class: "copy", "aria-label": label, onclick: click }, text);
  const all = button("Show all", "Show all of the timeline", () => zoomTo(...whole));
  all.disabled = true;
  let signal = null,
    whole = null, // the ends of the picture that is not zoomed, in milliseconds since 1970
    part = null, // those that are zoomed to; null: the whole
    drawing = false,
    due = false, // another picture than the one in progress is needed
    pinch = null, // two fingers: their distance, their place, and the part when they came down
    selected = null;

  const svg = () => picture.firstElementChild;
  const shown = () => part ?? whole;

  async function draw() {
    due = true;
    if (drawing || pinch) return; // that one draws
    drawing = true;
    try {
      while (due && !signal.aborted) {
        due = false;
        const zoom = part,
          query = zoom ? `&from=${zoom[0]}&to=${zoom[1]}` : "";
        const next = await getImage(`/api/timeline?name=${encodeURIComponent(name)}&last=${range.value}${query}`, signal);
        if (pinch) due = true; // the fingers are on the picture, which must stay
        else show(document.adoptNode(next), zoom);
        if (pinch) return;
      }
    } finally {
      drawing = false;
    }
  }

  function show(next, zoom) {
    const place = picture.scrollLeft;
    picture.replaceChildren(next);
    picture.scrollLeft = place;
    if (!zoom) whole = [+next.dataset.begin, +next.dataset.end];
    if (!selected) return;
    shapes()
      .find((shape) => identity(shape) === selected)
      ?.classList.add("selected");
  }

  function zoomTo(from, to) {
    if (!whole) return;
    const length = Math.max(to - from, minLength),
      begin = Math.round(Math.min(Math.max(from, whole[0]), whole[1] - length));
    part = length < whole[1] - whole[0] ? [begin, begin + Math.round(length)] : null;
    all.disabled = !part;
    if (pinch) preview();
    else draw().catch(() => {}); // the next load reports it
  }

  // zoom makes the time that is shown longer by a factor. What is at a place, from 0 to 1, stays there.
  function zoom(factor, place) {
    const [from, to] = shown(),
      at = from + (to - from) * place;
    zoomTo(at - (at - from) * factor, at + (to - at) * factor);
  }

  function move(share) {
    const [from, to] = shown();
    zoomTo(from + (to - from) * share, to + (to - from) * share);
  }

  // axis returns the ends of the axis in pixels from the edge of the picture.
  function axis() {
    const scale = svg().clientWidth / svg().viewBox.baseVal.width;
    return [svg().dataset.left * scale, svg().dataset.right * scale];
  }

  // placeOf returns the place on the axis, from 0 to 1, that is under a finger or the pointer.
  function placeOf(x) {
    const [left, right] = axis();
    return Math.min(Math.max((x - picture.getBoundingClientRect().left + picture.scrollLeft - left) / (right - left), 0), 1);
  }

  // preview stretches the picture until the one of the part is drawn.
  function preview() {
    const [left, right] = axis(),
      [from, to] = shown(),
      { begin, end } = svg().dataset;
    const stretch = (end - begin) / (to - from),
      offset = left - stretch * left - ((from - begin) / (to - from)) * (right - left);
    svg().style.transform = `matrix(${stretch}, 0, 0, 1, ${offset}, 0)`;
  }

  // shapes are what can be selected, in the order of time.
  const shapes = () => [...picture.querySelectorAll("[data-from]")].sort((a, b) => a.dataset.from - b.dataset.from);

  function select(shape) {
    picture.querySelector(".selected")?.classList.remove("selected");
    shape.classList.add("selected");
    selected = identity(shape);
    choose(shape);
  }

  function step(by) {
    const list = shapes(),
      at = list.findIndex((shape) => shape.classList.contains("selected")),
      next = at < 0 ? (by > 0 ? 0 : list.length - 1) : at + by;
    if (!list[next]) return part && move(by / 2);
    select(list[next]);
    list[next].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // middle is the place that keys zoom to: that of the selected shape.
  function middle() {
    const shape = picture.querySelector(".selected"),
      [from, to] = shown();
    return shape ? Math.min(Math.max(((+shape.dataset.from + +shape.dataset.to) / 2 - from) / (to - from), 0), 1) : 0.5;
  }

  picture.addEventListener("click", (event) => {
    const shape = event.target.closest("[data-from]");
    if (shape) select(shape);
  });
  picture.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !whole) return;
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (way && event.shiftKey) move(way / 4);
    else if (way) step(way);
    else if (event.key === "+" || event.key === "=") zoom(1 / keyZoom, middle());
    else if (event.key === "-") zoom(keyZoom, middle());
    else if (event.key === "0") zoomTo(...whole);
    else return;
    event.preventDefault();
  });
  // The wheel zooms when the timeline has the focus, or with Ctrl, which is what touchpads send for two fingers. Else it scrolls the page.
  picture.addEventListener(
    "wheel",
    (event) => {
      if (!whole) return;
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (sideways ? !part : !event.ctrlKey && document.activeElement !== picture) return;
      event.preventDefault();
      const turned = ((sideways && event.deltaX) || event.deltaY) * (event.deltaMode ? 30 : 1);
      if (sideways) move(turned / 600);
      else zoom(1.25 ** (Math.min(Math.max(turned, -300), 300) / 100), placeOf(event.clientX));
    },
    { passive: false },
  );
  const fingers = ([a, b]) => ({
    distance: Math.max(Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY), 20),
    place: placeOf((a.clientX + b.clientX) / 2),
  });
  const touch = (event) => {
    if (event.touches.length !== 2 || !whole) return;
    event.preventDefault();
    const { distance, place } = fingers(event.touches);
    if (!pinch) return (pinch = { distance, place, from: shown()[0], length: shown()[1] - shown()[0] });
    const length = (pinch.length * pinch.distance) / distance,
      from = pinch.from + pinch.length * pinch.place - length * place;
    zoomTo(from, from + length);
  };
  const release = (event) => {
    if (!pinch || event.touches.length > 1) return;
    pinch = null;
    draw().catch(() => {}); // the next load reports it
  };
  picture.addEventListener("touchstart", touch, { passive: false });
  picture.addEventListener("touchmove", touch, { passive: false });
  picture.addEventListener("touchend", release);
  picture.addEventListener("touchcancel", release);
  range.addEventListener("change", () => {
    part = null;
    all.disabled = true;
    draw().catch(() => {}); // the next load reports it
  });

  const zoomIn = button("+", "Zoom in", () => whole && zoom(1 / keyZoom, middle())),
    zoomOut = button("−", "Zoom out", () => whole && zoom(keyZoom, middle()));
  return {
    picture,
    controls: [zoomOut, zoomIn, all, range],
    load(s) {
      signal = s;
      return draw();
    },
  };
}
