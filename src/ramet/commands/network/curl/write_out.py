"""`-w`: what curl says about a transfer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

from ramet.commands.network.curl.options import VERSION_TEXT
from ramet.core.paths import encode

_TOKEN: Final = re.compile(r"%%|%\{(?P<name>[^}]*)\}|%header\{(?P<header>[^}]*)\}|\\(?P<escape>[nrt\\])")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}


@dataclass
class Report:
    """What one transfer did. Times are in seconds."""

    url: str
    number: int = 0
    url_effective: str = ""
    method: str = "GET"
    status: int = 0
    version: str = "0"
    content_type: str | None = None
    redirect_url: str | None = None
    referer: str | None = None
    redirects: int = 0
    size_download: int = 0
    size_upload: int = 0
    size_header: int = 0
    size_request: int = 0
    connects: int = 0
    remote_ip: str = ""
    remote_port: int = 0
    scheme: str = ""
    filename: str | None = None
    exitcode: int = 0
    error: str | None = None
    time_namelookup: float = 0.0
    time_connect: float = 0.0
    time_appconnect: float = 0.0
    time_pretransfer: float = 0.0
    time_starttransfer: float = 0.0
    time_redirect: float = 0.0
    time_total: float = 0.0
    headers: list[tuple[str, str]] = field(default_factory=list)

    def variables(self) -> dict[str, object]:
        took = self.time_total or 1e-6
        return {
            "content_type": self.content_type, "errormsg": self.error, "exitcode": self.exitcode,
            "filename_effective": self.filename, "http_code": self.status, "http_connect": 0,
            "http_version": self.version, "local_ip": "", "local_port": 0, "method": self.method,
            "num_connects": self.connects, "num_headers": len(self.headers), "num_redirects": self.redirects,
            "redirect_url": self.redirect_url, "referer": self.referer, "remote_ip": self.remote_ip,
            "proxy_ssl_verify_result": 0,
            "remote_port": self.remote_port, "response_code": self.status, "scheme": self.scheme.upper() or None,
            "size_download": self.size_download, "size_header": self.size_header, "size_request": self.size_request,
            "size_upload": self.size_upload, "speed_download": int(self.size_download / took),
            "speed_upload": int(self.size_upload / took), "ssl_verify_result": 0,
            "time_appconnect": self.time_appconnect, "time_connect": self.time_connect,
            "time_namelookup": self.time_namelookup, "time_pretransfer": self.time_pretransfer,
            "time_redirect": self.time_redirect, "time_starttransfer": self.time_starttransfer,
            "time_total": self.time_total, "url": self.url, "url_effective": self.url_effective,
            "urlnum": self.number, "curl_version": f"libcurl/{VERSION_TEXT}",
        }  # fmt: skip


def written(form: str, report: Report) -> tuple[bytes, bytes]:
    """What goes to stdout and to stderr."""
    values = report.variables()
    out, err = list[str](), list[str]()
    into, at = out, 0
    for found in _TOKEN.finditer(form):
        into.append(form[at : found.start()])
        at = found.end()
        name = found["name"]
        if name in ("stdout", "stderr"):
            into = out if name == "stdout" else err
        elif name == "onerror":
            if not report.exitcode:
                return encode("".join(out)), encode("".join(err))
        elif name is not None and name not in values and name not in ("json", "header_json"):
            err.append(f"curl: unknown --write-out variable: '{name}'\n")
        else:
            into.append(_value(found, values, report))
    into.append(form[at:])
    return encode("".join(out)), encode("".join(err))


def _value(found: re.Match[str], values: dict[str, object], report: Report) -> str:
    if found["escape"] is not None:
        return _ESCAPES[found["escape"]]
    if found["header"] is not None:
        said = [text for name, text in report.headers if name.lower() == found["header"].lower()]
        return said[0] if said else ""
    name = found["name"]
    if name is None:
        return "%"
    if name == "json":
        return json.dumps(values, separators=(",", ":"))
    if name == "header_json":
        grouped: dict[str, list[str]] = {}
        for key, text in report.headers:
            grouped.setdefault(key.lower(), []).append(text)
        return "{" + ",\n".join(f"{json.dumps(key)}:{json.dumps(rows)}" for key, rows in grouped.items()) + "\n}"
    value = values[name]
    if name in ("http_code", "response_code", "http_connect"):
        return f"{value:03}"
    if isinstance(value, float):
        return f"{value:.6f}"
    return "" if value is None else str(value)
