"""Fetch xterm.js again, and change xterm.js where the content policy of the page needs it: `make vendor`.

The page forbids styles in markup. xterm.js makes `style` elements and sets a `style` attribute: here the elements
become adopted style sheets, and the attribute is set through the object model, both of which the policy allows.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

PLACE = Path(__file__).parents[3] / "src" / "ramet" / "apps" / "ui" / "static" / "vendor"
XTERM, FIT = "@xterm/xterm@6.0.0", "@xterm/addon-fit@0.11.0"
ADOPTED = """\
// Changed for Ramet: styles are adopted style sheets, and no style attribute is set as markup.
function adoptedStyle() {
  const element = document.createElement("template");
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", { set: (text) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
"""
CHANGES = (
    ('_styleElement=n.mainDocument.createElement("style")', "_styleElement=adoptedStyle()"),
    ('_dimensionsStyleElement=this._document.createElement("style")', "_dimensionsStyleElement=adoptedStyle()"),
    ('_themeStyleElement=this._document.createElement("style")', "_themeStyleElement=adoptedStyle()"),
    ('t.setAttribute("style",`${t.getAttribute("style")||""}${e};`)', "t.style.cssText+=`;${e}`"),
)  # fmt: skip


def package(name: str) -> dict[str, bytes]:
    """The files of a package of npm."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["npm", "pack", "--silent", name], cwd=folder, capture_output=True, text=True, check=True)
        packed = (Path(folder) / done.stdout.split()[-1]).read_bytes()
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for member in tar:
            if (file := tar.extractfile(member)) is not None:
                found[member.name.removeprefix("package/")] = file.read()
    return found


def without_map(code: bytes) -> str:
    return "\n".join(line for line in code.decode().split("\n") if not line.startswith("//# sourceMappingURL"))


def changed(code: str) -> str:
    for before, after in CHANGES:
        assert code.count(before) == 1, f"the new version has no {before!r}: look at what it does instead"
        code = code.replace(before, after)
    assert 'createElement("style")' not in code and 'setAttribute("style"' not in code
    return ADOPTED + code


def main() -> None:
    xterm, fit = package(XTERM), package(FIT)
    (PLACE / "xterm.js").write_text(changed(without_map(xterm["lib/xterm.mjs"])))
    (PLACE / "xterm.css").write_bytes(xterm["css/xterm.css"])
    (PLACE / "xterm-fit.js").write_text(without_map(fit["lib/addon-fit.mjs"]))
    notice = f"{XTERM} and {FIT}, changed for Ramet as the head of xterm.js says.\n\n"
    (PLACE / "LICENSE.txt").write_text(notice + xterm["LICENSE"].decode())


if __name__ == "__main__":
    main()
