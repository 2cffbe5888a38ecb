// How a person likes things to be shown, kept by the browser; nothing of a workspace, and never the token.

const KEY = "ramet-look-";

export function kept(name) {
  try {
    return localStorage.getItem(KEY + name) ?? "";
  } catch {
    return ""; // the browser keeps nothing
  }
}

export function keep(name, value) {
  try {
    if (value) localStorage.setItem(KEY + name, value);
    else localStorage.removeItem(KEY + name);
  } catch {
    return; // it holds for this view
  }
}
