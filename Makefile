# Two commands do everything, from a bare Debian 12 or 13 on (as root or with sudo):
#   make demo    netboot the virtual board and run the suites on it
#   make check   set up and pass all tests
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := python3 python3-venv python3-dev gcc iproute2 openssh-client util-linux debian-archive-keyring

.PHONY: demo check check-faults setup lint test suites clean

demo: suites

check: setup lint test suites

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The framework's own tests; the suites say why they are skipped.
test: setup
	$(SUDO) $(BIN)/pytest

suites: setup
	$(SUDO) $(BIN)/pytest --lg-env virtual-arm64.yaml testsuites

# Boots and tests that fail slowly, for real.
check-faults: setup
	$(SUDO) $(BIN)/pytest -m faults tests

# Kernel, root filesystem, U-Boot and QEMU, into the cache.
setup: $(VENV)/.ready
	$(SUDO) $(BIN)/hil lab setup

$(VENV)/.ready: pyproject.toml Makefile
	@missing=; for p in $(PACKAGES); do \
	    dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; \
	done; \
	if [ -n "$$missing" ]; then \
	    $(SUDO) apt-get update && \
	    $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $$missing; \
	fi
	/usr/bin/python3 -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) results
