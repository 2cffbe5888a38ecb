// Making elements. Whatever comes from a workspace becomes a text node or a checked attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";
const LOCAL = /^(#|blob:)/;

/** An element; `on*` are listeners, `class` may be a list, true is an empty attribute, false and null are none. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", [value].flat().filter(Boolean).join(" "));
    else if (name === "value") element.value = value;
    else if ((name === "href" || name === "src") && !LOCAL.test(value)) throw new TypeError(`${name} leads away: ${value}`);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return put(element, ...children);
}

/** Add children: nodes, text, lists of them; null and false are nothing. */
export function put(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Put children in the place of what is there. */
export function refill(element, ...children) {
  element.replaceChildren();
  return put(element, ...children);
}

export const link = (href, ...children) => h("a", { href }, ...children);

/** A button that does something; while it does, it cannot be pressed again. */
export function button(label, act, attributes = {}) {
  const made = h("button", { type: "button", ...attributes, onclick: async (event) => {
    made.disabled = true;
    try {
      await act(event);
    } finally {
      made.disabled = false;
    }
  } }, label);
  return made;
}
