"""Options of rg, and the file types of -t."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ramet.commands.framework.command import UsageError, choose, flag, mixed, ordered, several, value
from ramet.commands.framework.command import count as repeated

_TYPES = """
    asciidoc: *.adoc *.asc *.asciidoc
    asm: *.S *.asm *.s
    awk: *.awk
    bash: *.bash *.sh .bashrc .bash_profile
    bazel: *.BUILD *.bazel *.bazelrc *.bzl BUILD WORKSPACE
    bzip2: *.bz2 *.tbz2
    c: *.[chH] *.[chH].in *.cats
    clojure: *.clj *.cljc *.cljs *.cljx
    cmake: *.cmake CMakeLists.txt
    coffeescript: *.coffee
    config: *.cfg *.conf *.config *.ini
    cpp: *.[ChH] *.[ChH].in *.[ch]pp *.[ch]pp.in *.[ch]xx *.[ch]xx.in *.cc *.cc.in *.hh *.hh.in *.inl
    crystal: *.cr Projectfile
    cs: *.cs
    csharp: *.cs
    css: *.css *.scss
    csv: *.csv
    cython: *.pxd *.pxi *.pyx
    d: *.d
    dart: *.dart
    diff: *.diff *.patch
    docker: *Dockerfile*
    edn: *.edn
    elisp: *.el
    elixir: *.eex *.ex *.exs
    elm: *.elm
    erb: *.erb
    erlang: *.erl *.hrl
    fish: *.fish
    fortran: *.F *.F77 *.F90 *.F95 *.f *.f77 *.f90 *.f95 *.pfo
    fsharp: *.fs *.fsi *.fsx
    go: *.go
    gradle: *.gradle
    graphql: *.graphql *.graphqls
    groovy: *.gradle *.groovy
    gzip: *.gz *.tgz
    h: *.h *.hpp
    haskell: *.c2hs *.cpphs *.hs *.hsc *.lhs
    hs: *.hs *.lhs
    html: *.ejs *.htm *.html
    java: *.java *.jsp *.jspx *.properties
    jinja: *.j2 *.jinja *.jinja2
    jl: *.jl
    js: *.js *.jsx *.mjs *.cjs *.vue
    json: *.json *.sarif composer.lock
    jsonl: *.jsonl
    julia: *.jl
    jupyter: *.ipynb *.jpynb
    kotlin: *.kt *.kts
    less: *.less
    lisp: *.el *.jl *.lisp *.lsp *.sc *.scm
    lock: *.lock package-lock.json
    log: *.log
    lua: *.lua
    make: *.mak *.mk [Mm]akefile [Mm]akefile.am [Mm]akefile.in GNUmakefile
    man: *.[0-9lnpx] *.[0-9][cEFMmpSx]
    markdown: *.markdown *.md *.mdown *.mkdn *.mdx
    matlab: *.m
    md: *.markdown *.md *.mdown *.mkdn *.mdx
    meson: meson.build meson_options.txt
    nim: *.nim *.nimble *.nimf *.nims
    nix: *.nix
    objc: *.h *.m
    objcpp: *.h *.mm
    ocaml: *.ml *.mli *.mll *.mly
    org: *.org *.org_archive
    pascal: *.dpr *.inc *.lpr *.pas *.pp
    pdf: *.pdf
    perl: *.PL *.perl *.pl *.plh *.plx *.pm *.t
    php: *.php *.php3 *.php4 *.php5 *.phtml
    po: *.po
    protobuf: *.proto
    ps: *.cdxml *.ps1 *.ps1xml *.psd1 *.psm1
    puppet: *.erb *.pp *.rb
    py: *.py *.pyi
    python: *.py *.pyi
    r: *.R *.Rmd *.Rnw *.r
    racket: *.rkt
    readme: *README README*
    rst: *.rst
    ruby: *.gemspec *.rb *.rbw *.ru .irbrc Gemfile Rakefile config.ru
    rust: *.rs
    sass: *.sass *.scss
    scala: *.sbt *.scala
    sh: *.bash *.bashrc *.csh *.cshrc *.ksh *.kshrc *.sh *.tcsh *.zsh .bash_login .bash_profile .bashrc .profile
    sml: *.sig *.sml
    sql: *.psql *.sql
    stylus: *.styl
    svelte: *.svelte
    svg: *.svg
    swift: *.swift
    tcl: *.tcl
    tex: *.bib *.cls *.dtx *.ins *.ltx *.sty *.tex
    textile: *.textile
    tf: *.tf *.tfvars
    thrift: *.thrift
    toml: *.toml Cargo.lock
    ts: *.ts *.tsx *.cts *.mts
    twig: *.twig
    txt: *.txt
    typescript: *.ts *.tsx *.cts *.mts
    vala: *.vala
    vb: *.vb
    verilog: *.sv *.svh *.v *.vh
    vhdl: *.vhd *.vhdl
    vim: *.vim
    vimscript: *.vim
    vue: *.vue
    wiki: *.mediawiki *.wiki
    xml: *.dtd *.rng *.sch *.svg *.xhtml *.xjb *.xml *.xml.dist *.xsd *.xsl *.xslt
    xz: *.txz *.xz
    yacc: *.y
    yaml: *.yaml *.yml
    zig: *.zig
    zsh: *.zsh .zlogin .zlogout .zprofile .zshenv .zshrc
    zstd: *.zst *.zstd
"""
TYPES = dict(line.strip().split(": ") for line in _TYPES.strip().splitlines())


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"error parsing flag: value is not a valid number: {text}", 2, hint=False)
    return int(text)


def _order(direction: str) -> Callable[[str], tuple[str, str]]:
    def convert(text: str) -> tuple[str, str]:
        if text not in ("path", "modified", "accessed", "created", "none"):
            raise UsageError(f"error parsing flag: choice '{text}' is unrecognized", 2, hint=False)
        return text, direction

    return convert


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    if found is None:
        raise UsageError(f"invalid format for size '{text}'", 2, hint=False)
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]


@dataclass(frozen=True, slots=True)
class RgOptions:
    patterns: tuple[str, ...] = several("-e", "--regexp", metavar="PATTERN", help="a pattern to search for")
    pattern_files: tuple[str, ...] = several("-f", "--file", metavar="FILE", help="patterns from a file")
    case: str = choose(
        {"-i --ignore-case": "i", "-S --smart-case": "S", "-s --case-sensitive": "s"}, default="s", help="case rules"
    )
    fixed: bool = choose(
        {"-F --fixed-strings": True, "--no-fixed-strings": False},
        default=False,
        help="treat patterns as literal strings",
    )
    words: bool = flag("-w", "--word-regexp", help="match only whole words")
    whole_line: bool = flag("-x", "--line-regexp", help="match only whole lines")
    invert: bool = flag("-v", "--invert-match", help="select lines that do not match")
    line_number: bool | None = choose({"-n --line-number": True, "-N --no-line-number": False}, help="line numbers")
    column: bool = choose({"--column": True, "--no-column": False}, default=False, help="show column numbers")
    vimgrep: bool = flag("--vimgrep", help="one line per match: file, line, column")
    with_name: bool | None = choose({"-H --with-filename": True, "-I --no-filename": False}, help="file names")
    files_with: str = choose(
        {"-l --files-with-matches": "with", "--files-without-match": "without"},
        default="",
        help="print only the names of files with, or without, a match",
    )
    count: bool = flag("-c", "--count", help="how many lines match in each file")
    count_matches: bool = flag("--count-matches", help="how many matches each file has")
    only_matching: bool = flag("-o", "--only-matching", help="print only the matched parts")
    replace: str | None = value("-r", "--replace", metavar="TEXT", help="replace every match in the output")
    quiet: bool = flag("-q", "--quiet", help="print nothing")
    max_count: int | None = value("-m", "--max-count", metavar="NUM", convert=_number, help="matching lines per file")
    after: int | None = value("-A", "--after-context", metavar="NUM", convert=_number, help="lines after")
    before: int | None = value("-B", "--before-context", metavar="NUM", convert=_number, help="lines before")
    context: int | None = value("-C", "--context", metavar="NUM", convert=_number, help="lines before and after")
    separator: str | None = mixed(
        value("--context-separator", metavar="SEP", help="between groups of lines"),
        flag("--no-context-separator", const=None, help="nothing between groups"),
        default="--",
    )
    match_mark: str = value(
        "--field-match-separator", metavar="SEP", default=":", help="behind names and numbers of matching lines"
    )
    context_mark: str = value(
        "--field-context-separator", metavar="SEP", default="-", help="behind names and numbers of lines around them"
    )
    null_data: bool = flag("--null-data", help="lines end in NUL bytes")
    colours: tuple[str, ...] = several("--colors", metavar="SPEC", help="colours, as in match:fg:blue or path:none")
    path_separator: str = value(
        "--path-separator", metavar="SEP", default="/", choices=("/",), help="between the parts of a path"
    )
    globs: tuple[str, ...] = several("-g", "--glob", metavar="GLOB", help="only these files; ! leaves out")
    iglobs: tuple[str, ...] = several("--iglob", metavar="GLOB", help="the same, ignoring case")
    types: tuple[str, ...] = several("-t", "--type", metavar="TYPE", help="only files of this type")
    types_not: tuple[str, ...] = several("-T", "--type-not", metavar="TYPE", help="no files of this type")
    type_list: bool = flag("--type-list", help="show the known types")
    json: bool = choose(
        {"--json": True, "--no-json": False}, default=False, help="print the results as JSON, one message per line"
    )
    hidden: bool = choose(
        {"-. --hidden": True, "--no-hidden": False}, default=False, help="search hidden files and directories"
    )
    no_ignore: bool = choose(
        {"--no-ignore": True, "--ignore": False}, default=False, help="do not respect ignore files"
    )
    no_ignore_vcs: bool = choose(
        {"--no-ignore-vcs": True, "--ignore-vcs": False}, default=False, help="do not respect .gitignore"
    )
    no_ignore_dot: bool = choose(
        {"--no-ignore-dot": True, "--ignore-dot": False}, default=False, help="do not respect .ignore and .rgignore"
    )
    no_ignore_parent: bool = choose(
        {"--no-ignore-parent": True, "--ignore-parent": False},
        default=False,
        help="do not respect ignore files of parent directories",
    )
    no_require_git: bool = choose(
        {"--no-require-git": True, "--require-git": False},
        default=False,
        help="respect .gitignore outside of repositories as well",
    )
    binary: bool = choose(
        {"--binary": True, "--no-binary": False}, default=False, help="search binary files, and say where they match"
    )
    encoding: str = mixed(
        value(
            "-E",
            "--encoding",
            metavar="ENCODING",
            choices=("auto", "none", "utf-8", "utf8", "UTF-8", "ascii"),
            help="the encoding of the files",
        ),
        flag("--no-encoding", const="auto", help="the encoding is found out"),
        default="auto",
    )
    unrestricted: int = repeated("-u", "--unrestricted", help="less filtering; up to three times")
    text: bool = choose(
        {"-a --text": True, "--no-text": False}, default=False, help="search binary files as if they were text"
    )
    follow: bool = choose({"-L --follow": True, "--no-follow": False}, default=False, help="follow symbolic links")
    max_depth: int | None = value(
        "-d", "--max-depth", "--maxdepth", metavar="NUM", convert=_number, help="levels to go"
    )
    list_files: bool = flag("--files", help="print the files that would be searched")
    null_name: bool = flag("-0", "--null", help="a NUL byte after file names")
    heading: bool = choose(
        {"--heading": True, "--no-heading": False}, default=False, help="file names on their own line"
    )
    pretty: bool = flag("-p", "--pretty", help="colours, headings and line numbers")
    colour: str = value(
        "--color",
        metavar="WHEN",
        default="auto",
        choices=("always", "never", "auto", "ansi"),
        help="when to colour the output",
    )
    trim: bool = choose(
        {"--trim": True, "--no-trim": False}, default=False, help="remove leading white space from lines"
    )
    no_messages: bool = choose(
        {"--no-messages": True, "--messages": False}, default=False, help="no messages about files that cannot be read"
    )
    pcre: bool = choose(
        {"-P --pcre2": True, "--no-pcre2": False}, default=False, help="allow look-around and back-references"
    )
    engine: str = value(
        "--engine",
        metavar="ENGINE",
        default="default",
        choices=("default", "pcre2", "auto"),
        help="like -P when pcre2 or auto",
    )
    multiline: bool = choose(
        {"-U --multiline": True, "--no-multiline": False}, default=False, help="matches may span lines"
    )
    dotall: bool = choose(
        {"--multiline-dotall": True, "--no-multiline-dotall": False},
        default=False,
        help="with -U, a dot matches line ends, too",
    )
    crlf: bool = choose(
        {"--crlf": True, "--no-crlf": False},
        default=False,
        help="a carriage return before a newline belongs to the line end",
    )
    passthru: bool = flag("--passthru", "--passthrough", help="print all lines, matching or not")
    byte_offset: bool = flag("-b", "--byte-offset", help="show where lines or matches begin, in bytes")
    max_columns: int | None = value("-M", "--max-columns", metavar="NUM", convert=_number, help="omit longer lines")
    preview: bool = choose(
        {"--max-columns-preview": True, "--no-max-columns-preview": False},
        default=False,
        help="show how lines that are too long begin",
    )
    include_zero: bool = flag("--include-zero", help="with -c, name files without a match as well")
    stats: bool = choose(
        {"--stats": True, "--no-stats": False}, default=False, help="say how much was searched and found"
    )
    pre: str | None = mixed(
        value("--pre", metavar="COMMAND", help="search what COMMAND makes of each file"),
        flag("--no-pre", const=None, help="search the files themselves"),
        default=None,
    )
    pre_globs: tuple[str, ...] = several("--pre-glob", metavar="GLOB", help="run --pre only for files that match GLOB")
    search_zip: bool = choose(
        {"-z --search-zip": True, "--no-search-zip": False}, default=False, help="search inside compressed files"
    )
    sort: tuple[str, str] | None = mixed(
        value("--sort", metavar="BY", convert=_order(""), help="path, modified, accessed, created or none"),
        value("--sortr", metavar="BY", convert=_order("r"), help="the same, the other way round"),
        flag("--sort-files", const=("path", ""), help="by path"),
        default=None,
    )
    max_filesize: int | None = value("--max-filesize", metavar="SIZE", convert=_size, help="leave out larger files")
    type_add: tuple[str, ...] = several("--type-add", metavar="TYPE:GLOB", help="make a type, or widen one")
    type_clear: tuple[str, ...] = several("--type-clear", metavar="TYPE", help="forget the globs of a type")
    no_ignore_files: bool = choose(
        {"--no-ignore-files": True, "--ignore-files": False},
        default=False,
        help="leave out no more than what other rules say (--ignore-file)",
    )
    asked: bool = flag("-h", help="say how the command is used")
    engine_version: bool = flag("--pcre2-version", help="say which engine -P uses")
    globs_fold: bool = choose(
        {"--glob-case-insensitive": True, "--no-glob-case-insensitive": False},
        default=False,
        help="all globs ignore case",
    )
    ignore_files: tuple[str, ...] = several("--ignore-file", metavar="FILE", help="more rules of what to leave out")
    order: tuple[tuple[str, object], ...] = ordered()
