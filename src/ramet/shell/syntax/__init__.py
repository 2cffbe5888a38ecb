"""Shell text to frozen trees and back: `Parser` reads line by line, `parse` all at once, `printer` writes them."""

from __future__ import annotations

from ramet.shell.syntax.cache import parse, parse_lines
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.scanner import Options

__all__ = ["Options", "Parser", "SyntaxFailure", "parse", "parse_lines"]
