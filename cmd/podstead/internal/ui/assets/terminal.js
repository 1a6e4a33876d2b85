// A terminal in a container of a pod, if podstead ui allows actions. It is in a frame: xterm.js needs another content security policy.

import { command, h, isName, renderer, setText } from "/dom.js";

// terminalOf returns the section of a pod: update(uid, names) is for the containers that run; an empty uid allows no terminal.
export function terminalOf(pod) {
  const choice = h("select", { "aria-label": "Container of the terminal", onchange: () => showCommand() });
  const opener = h("button", { type: "button", class: "button quiet", onclick: () => (frame ? close() : open()) });
  const place = h("div", { class: "terminal" }),
    own = h("div");
  const element = h(
    "section",
    { "aria-labelledby": "terminal", hidden: true },
    h("div", { class: "bar" }, h("h2", { id: "terminal" }, "Terminal"), h("span", { class: "gap" }), choice, opener),
    place,
    own,
  );
  let frame = null,
    uid = "";

  const showCommand = () =>
    own.replaceChildren(isName(pod) && isName(choice.value) ? command(`podstead exec -it ${pod} -c ${choice.value} -- sh`) : "");

  const showChoice = renderer((names) => {
    const chosen = choice.value;
    choice.replaceChildren(...names.map((name) => h("option", { value: name, selected: name === chosen }, name)));
    showCommand();
  });

  function update() {
    element.hidden = !frame && (!uid || !choice.options.length);
    choice.disabled = Boolean(frame);
    setText(opener, frame ? "Close the terminal" : "Open a terminal");
  }

  function open() {
    const query = new URLSearchParams({ pod, uid, container: choice.value });
    frame = h("iframe", { src: `/terminal/?${query}`, title: `Terminal of container ${choice.value}`, onleave: () => opener.focus() });
    place.append(frame);
    frame.scrollIntoView({ block: "nearest" });
    update();
  }

  function close() {
    frame.remove();
    frame = null;
    update();
  }

  return {
    element,
    update(allowed, names) {
      uid = allowed;
      if (!frame) showChoice(names);
      update();
    },
  };
}
