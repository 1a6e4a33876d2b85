// Actions on a pod, if podstead ui allows them: buttons, and a question before each.

import { post } from "/api.js";
import { command, h, isName, setText } from "/dom.js";

const actions = {
  restart: ["Restart", "All containers stop within their grace period, then the pod starts again, init containers too."],
  stop: ["Stop", "All containers stop within their grace period. The pod stays stopped until it is started, also after a reboot."],
  start: ["Start", "All containers start again, init containers too."],
};

// actionsOf returns the actions on a pod in a state.
export function actionsOf(state) {
  if (["Succeeded", "Failed", "Stopped"].includes(state)) return ["start"];
  return ["Ready", "NotReady", "Unknown"].includes(state) ? ["restart", "stop"] : [];
}

// buttonOf returns the button of an action. The function report gets the result.
export function buttonOf(action, name, uid, report) {
  const [label, text] = actions[action];
  const ask = () => {
    const error = h("p", { class: "hint", role: "alert", hidden: true });
    const cancel = h("button", { type: "button", class: "button quiet", autofocus: true, onclick: () => dialog.close() }, "Cancel");
    const confirm = h("button", { type: "button", class: "button", onclick: () => act() }, label);
    const dialog = h(
      "dialog",
      { "aria-labelledby": "question", onclose: () => dialog.remove() },
      h("h2", { id: "question" }, `${label} pod ${name}?`),
      h("p", null, text),
      isName(name) ? command(`podstead ${action} ${name}`) : "",
      error,
      h("div", { class: "bar" }, h("span", { class: "gap" }), cancel, confirm),
    );
    async function act() {
      confirm.disabled = true;
      try {
        report((await post(`/api/${action}`, { name, uid })).message);
        dialog.close();
      } catch (e) {
        confirm.disabled = false;
        error.hidden = false;
        setText(error, `${label} failed: ${e.message}`);
      }
    }
    document.body.append(dialog);
    dialog.showModal();
  };
  return h("button", { type: "button", class: "button quiet", onclick: ask }, label);
}
