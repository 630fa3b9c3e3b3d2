# Find or install the programs that .ci/run, .ci/full and .ci/newest need besides Python packages. Sourced.
# A program counts only if it starts: a name on the PATH may be a version manager's shim, or a stub that asks for a package.

starts() { "$(type -P "$1" || echo false)" --version >/dev/null 2>&1; }

debian() {                                         # debian PACKAGE...: install packages of Debian or Ubuntu
    local log
    if [ "$(id -u)" != 0 ] || ! starts apt-get; then
        echo "$* cannot be installed without root and apt-get." >&2
        return 1
    fi
    log=$(mktemp)
    # One of the machine's archives may be unreachable while another has the package.
    if { apt-get -q update; DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "$@"; } >"$log" 2>&1; then
        rm "$log"
    else
        echo "apt-get could not install $*:" >&2
        tail -n 20 "$log" >&2
        rm "$log"
        return 1
    fi
}

install_venv() {                                   # Debian's Python does not include them
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then debian python3-venv; fi
    python3 --version
}

install_chromium() {                               # for the browser tests, which fail in CI if it or the driver is missing
    local browser
    # Playwright's Node and the Node of the extra `lint` load this library.
    if [ "$(uname)" = Linux ] && ! python3 -c 'import ctypes; ctypes.CDLL("libatomic.so.1")' 2>/dev/null; then debian libatomic1; fi
    for browser in chromium chromium-browser google-chrome google-chrome-stable; do
        if starts "$browser"; then
            "$browser" --version
            return
        fi
    done
    debian chromium fonts-dejavu-core
    chromium --version
}

find_python_of_floors() {                          # print the first Python on the PATH for which the lowest supported versions have wheels
    local python
    for python in $(type -aP python3.11 python3.12 python3); do
        if "$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    return 1
}

python_of_floors() {                               # the same, installed if necessary; fail if there is none
    find_python_of_floors && return
    local version
    for version in 3.11 3.12; do
        if debian "python$version" "python$version-venv" && find_python_of_floors; then return; fi
    done
    python3 -m venv "$work/uv" && "$work/uv/bin/python" -m pip --quiet install uv >&2 &&
        "$work/uv/bin/uv" python install 3.12 >&2 && "$work/uv/bin/uv" python find --managed-python 3.12
}

not_constrained() {                                # print the packages in .venv whose version differs from .ci/constraints.txt
    .venv/bin/python -m pip freeze --exclude-editable | sed -E -e ':again; s/^([^=]*)[._]/\1-/; t again' -e 's/[+].*//' |
        grep -ivxFf <(sed 's/ *;.*//' .ci/constraints.txt) || true
}
