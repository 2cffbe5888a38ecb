// Markdown as elements, made from the server's syntax tree. Only the elements below are made; everything else is text.

import { part, render } from "../lib/api.js";
import { away, h, link } from "../lib/dom.js";
import { notice } from "../lib/messages.js";
import { parentOf, place, resolved } from "../lib/names.js";
import { painted } from "../lib/paint.js";
import { imageType, linesOf, oneLine, visible } from "../lib/text.js";

const PLAIN = new Set(["p", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "del", "hr", "br", "code", "h1", "h2", "h3", "h4", "h5", "h6"]);
const IMAGE = 5 << 20;
const IMAGES = 40;

/** Render the text of a file; null when the server cannot. */
export async function document_(text, { name, rev, spec, path }, signal) {
  const told = await render("markdown", "", text, signal);
  if (told === null) return null;
  const anchors = new Map();
  let images = 0;
  const made = (node) => {
    if (typeof node === "string") return visible(node);
    const [tag, attributes, ...children] = node;
    const inner = () => children.map(made);
    if (tag === "pre") return h("pre", { tabindex: "0" }, code(attributes));
    if (tag === "a") return anchor(attributes.href, inner());
    if (tag === "img") return picture(attributes);
    if (tag === "check") return h("input", { type: "checkbox", disabled: true, checked: attributes.done, "aria-label": attributes.done ? "done" : "to do" });
    if (!PLAIN.has(tag)) return h("span", {}, inner());
    const element = h(tag, { start: tag === "ol" ? attributes.start : null, class: attributes.align && `to-${attributes.align}` }, inner());
    if (/^h\d$/.test(tag)) named(element);
    return tag === "table" ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, element) : element;
  };
  const named = (element) => {
    const slug = element.textContent.toLowerCase().trim().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
    let id = slug;
    for (let number = 1; anchors.has(id); number++) id = `${slug}-${number}`;
    anchors.set(id, element);
  };
  const anchor = (target, inner) => {
    if (target.startsWith("#")) {
      return h("a", { href: location.hash, onclick: (event) => {
        event.preventDefault(); // the URL fragment names the view
        anchors.get(decodeURIComponent(target.slice(1)))?.scrollIntoView();
      } }, inner);
    }
    if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(target)) return away(target, inner);
    return link(place("ws", { name, rev: spec, path: within(target) }), inner);
  };
  const within = (target) => resolved(parentOf(path), unescaped(target.replace(/[?#].*$/, "")));
  const picture = ({ src, alt }) => {
    const label = oneLine(alt || src);
    if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(src)) return away(src, `image: ${label}`);
    images += 1;
    const there = h("a", { href: place("ws", { name, rev: spec, path: within(src) }) }, `image: ${label}`);
    if (images <= IMAGES) shown(name, rev, within(src), label, signal).then((image) => image && there.replaceChildren(image), () => null);
    return there;
  };
  return h("article", { class: "document" }, told.tree.map(made), !told.tree.length && notice("An empty document."));
}

const unescaped = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const code = ({ text, lines }) => h("code", {}, linesOf(text).map((line, at) => [at > 0 && "\n", painted(line, lines[at])]));

/** An image of the same revision, if its bytes are one. */
async function shown(name, rev, path, alt, signal) {
  const { bytes, total } = await part(name, path, rev, 0, IMAGE, signal);
  const type = imageType(bytes);
  if (!type || total !== bytes.length) return null;
  const src = URL.createObjectURL(new Blob([bytes], { type }));
  signal.addEventListener("abort", () => URL.revokeObjectURL(src));
  return h("img", { src, alt });
}

export const isMarkdown = (path) => /\.(md|markdown|mdown)$/i.test(path);
