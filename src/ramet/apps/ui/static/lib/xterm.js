// The terminal emulator xterm.js with the colors of the page.

import { Terminal } from "../vendor/xterm.js";
import { FitAddon } from "../vendor/xterm-fit.js";

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** The theme from the style sheet's current colors. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const [ground, ink] = [of("paper"), of("ink")];
  const found = { background: ground, foreground: ink, cursor: of("accent"), cursorAccent: ground, selectionBackground: of("select") };
  const names = ["ink", "red", "green", "amber", "blue", "lane2", "lane5", "soft"];
  COLORS.forEach((color, at) => {
    found[color] = of(names[at]);
    found[`bright${color[0].toUpperCase()}${color.slice(1)}`] = of(names[at]);
  });
  return found;
}

/**
 * Open a terminal that fills an element of the page until the signal is aborted. `acts` are `data(text)`, `bytes(text)`,
 * `resized()`, `key(event)`, which says whether the terminal handles a key, and `follow(address)`.
 */
export function openTerminal(element, acts, signal, { screenReader = false } = {}) {
  const terminal = new Terminal({
    theme: theme(), fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
    fontSize: 13, lineHeight: 1.2, scrollback: 10_000, minimumContrastRatio: 4.5, macOptionIsMeta: true, convertEol: true,
    screenReaderMode: screenReader, linkHandler: { activate: (_, address) => acts.follow(address) },
  });
  const fitting = new FitAddon();
  terminal.loadAddon(fitting);
  terminal.open(element);
  terminal.attachCustomKeyEventHandler((event) => acts.key(event));
  terminal.onData(acts.data);
  terminal.onBinary(acts.bytes);
  fitting.fit();
  terminal.onResize(acts.resized);
  const watch = new ResizeObserver(() => element.isConnected && fitting.fit());
  watch.observe(element);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => (terminal.options.theme = theme());
  scheme.addEventListener("change", repaint);
  signal.addEventListener("abort", () => {
    scheme.removeEventListener("change", repaint);
    watch.disconnect();
    terminal.dispose();
  });
  return terminal;
}
