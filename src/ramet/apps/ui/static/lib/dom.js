// Building elements. Content of a workspace becomes a text node or a checked attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";
const LOCAL = /^(#|blob:)/;

/** Create an element; `on*` are listeners, `class` may be a list, true is an empty attribute, false and null add none. */
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

/** Append children: nodes, text, or lists of them; null and false are skipped. */
export function put(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Replace the children of an element. */
export function refill(element, ...children) {
  element.replaceChildren();
  return put(element, ...children);
}

/** Resolve once what is on the page now is painted. */
export const painting = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

const FIRST = 100; // elements, as many as a large screen shows
const NEXT = 400;

/** Append what `make` makes of each item: the first ones now, the others in pieces between frames. */
export function gradually(element, items, make) {
  let at = 0;
  const some = (count) => {
    const from = at;
    at += count;
    put(element, items.slice(from, at).map((item, number) => make(item, from + number)));
  };
  const next = () => {
    some(NEXT);
    if (at < items.length) requestAnimationFrame(next);
  };
  some(FIRST);
  if (at < items.length) painting().then(next);
  return element;
}

export const link = (href, ...children) => h("a", { href }, ...children);

const AWAY = ["http:", "https:", "mailto:"];

/** A link to another site, which learns nothing of this page; plain text unless the scheme is allowed. */
export function away(target, ...children) {
  if (!AWAY.some((protocol) => target.toLowerCase().startsWith(protocol))) return h("span", { title: target }, ...children);
  const made = h("a", { target: "_blank", rel: "noopener noreferrer nofollow", title: target }, ...children);
  made.setAttribute("href", target);
  return made;
}

const ICONS = {
  dir: "M1.7 4.2c0-.6.4-1 1-1h3.2l1.5 1.7h5.9c.6 0 1 .4 1 1v6.2c0 .6-.4 1-1 1H2.7c-.6 0-1-.4-1-1z",
  file: "M4 1.7h5l3.2 3.2v9.4H4zM9 1.7v3.2h3.2",
  link: "M6.5 9.5l3-3M7.2 4.5l1.3-1.3a2.6 2.6 0 0 1 3.7 3.7l-1.3 1.3M8.8 11.5l-1.3 1.3a2.6 2.6 0 0 1-3.7-3.7l1.3-1.3",
};

/** The icon for a kind of file. */
export const icon = (kind) => svg("svg", { class: ["icon", kind], viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[kind] ?? ICONS.file }));

/** A button that cannot be pressed again while its action runs. */
export function button(label, act, attributes = {}) {
  const made = h("button", { type: "button", ...attributes, onclick: async (event) => {
    if (made.hasAttribute("aria-disabled")) return;
    made.setAttribute("aria-disabled", "true"); // `disabled` would lose the focus, which a dialog gives back
    try {
      await act(event);
    } finally {
      made.removeAttribute("aria-disabled");
    }
  } }, label);
  return made;
}
