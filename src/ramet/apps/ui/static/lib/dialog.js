// Dialogs: ask for values, then act.

import { button, h, put, refill } from "./dom.js";
import { problemBox } from "./messages.js";

/**
 * Ask in a dialog, then act. Fields are `{name, label, value, hint, options, required, pattern}`; an error of the action is
 * shown in the dialog, which stays open. Resolves to whether it was done.
 */
export function ask({ title, text, fields = [], label, danger = false, act }) {
  return new Promise((resolve) => {
    const inputs = fields.map((field) => [field, input(field)]);
    const errors = h("div");
    const go = h("button", { type: "submit", class: danger ? "danger" : "primary" }, label);
    const form = h("form", { method: "dialog", onsubmit: async (event) => {
      event.preventDefault();
      if (go.hasAttribute("aria-disabled")) return;
      go.setAttribute("aria-disabled", "true");
      refill(errors);
      try {
        await act(Object.fromEntries(inputs.map(([field, element]) => [field.name, element.value.trim()])));
        done = true;
        dialog.close();
      } catch (error) {
        put(errors, problemBox(error));
      } finally {
        go.removeAttribute("aria-disabled");
      }
    } },
    h("h2", { id: "asked" }, title), text ? h("p", {}, text) : null,
    inputs.map(([field, element]) => h("label", {}, h("span", {}, field.label), element, field.hint ? h("small", {}, field.hint) : null)),
    errors, h("div", { class: "buttons" }, button("Cancel", () => dialog.close()), go));
    let done = false;
    const dialog = h("dialog", { "aria-labelledby": "asked", onclose: () => {
      dialog.remove();
      resolve(done);
    } }, form);
    document.body.append(dialog);
    dialog.showModal();
    (inputs[0]?.[1] ?? go).focus();
  });
}

function input({ name: id, value = "", options, required, pattern, placeholder }) {
  if (options) return h("select", { name: id }, options.map(([key, label]) => h("option", { value: key, selected: key === value }, label)));
  return h("input", { name: id, value, required, pattern, placeholder, autocomplete: "off", spellcheck: "false" });
}
