// Display preferences in localStorage: no content of a workspace, and never the token.

const KEY = "ramet-look-";

export function kept(name) {
  try {
    return localStorage.getItem(KEY + name) ?? "";
  } catch {
    return ""; // storage is blocked
  }
}

export function keep(name, value) {
  try {
    if (value) localStorage.setItem(KEY + name, value);
    else localStorage.removeItem(KEY + name);
  } catch {
    return; // storage is blocked: the choice lasts for this view
  }
}
