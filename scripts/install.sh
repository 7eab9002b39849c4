#!/bin/sh
# Makes .venv, if it is not there or does not run, and installs this checkout into it with an extra:
#
#   scripts/install.sh local      what `perdure demo` needs
#   scripts/install.sh dev        what the tests, the linter and the benchmarks need, too
#
# uv does it where it is installed; otherwise, or when uv fails, a Python with venv and pip does.
# PYTHON names the Python of a new .venv; without it the first one that is recent enough is taken.
set -eu
cd "$(dirname "$0")/.."

requirement="-e .[$1]"
needed="Python 3.11 or later"
recent_enough='import sys; sys.exit(sys.version_info < (3, 11))'
has_venv='import ensurepip, venv'

say() {
    printf '%s\n' "$*" >&2
}

venv_runs() {
    .venv/bin/python -c "$recent_enough" 2>/dev/null
}

install_with_uv() {
    venv_runs || uv venv --quiet --clear --python "${PYTHON:->=3.11}" .venv || return 1
    uv pip install --quiet --python .venv/bin/python $requirement
}

find_python() {
    incomplete=""
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        "$candidate" -c "$recent_enough" 2>/dev/null || continue
        if "$candidate" -c "$has_venv" 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
        incomplete=$candidate
    done
    if [ -n "$incomplete" ]; then
        say "$incomplete cannot make virtual environments: its module ensurepip is missing."
        say "Install it (Debian, Ubuntu: apt install python3-venv), or install uv, and try again."
    else
        say "perdure needs $needed, and found none: tried ${PYTHON:-python3, python3.11 to python3.14}."
        say "Install one, or uv, which brings its own; or name one: make PYTHON=/path/to/python3"
    fi
    return 1
}

install_with_pip() {
    if ! venv_runs || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        python=$(find_python) || exit 1
        "$python" -m venv --clear .venv
    fi
    .venv/bin/python -m pip install --quiet --disable-pip-version-check $requirement
}

say "Installing perdure[$1] into .venv ..."
if command -v uv >/dev/null 2>&1; then
    install_with_uv && exit
    say "uv could not do it (see above); trying with pip ..."
fi
install_with_pip
