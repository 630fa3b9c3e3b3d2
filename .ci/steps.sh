# Functions shared by .ci/run and .ci/full: work in a clean clone, run steps and time them. Sourced.
export CI=true PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/.ci/machine.sh"
work=$(mktemp -d)
report=()
running=""
declare -A begun

finish() {                                         # print where a failed run stopped, and clean up
    if [ -n "$running" ]; then
        printf '\n=== Failed in: %s\n' "$running"
        printf '%s\n' "${report[@]}"
    fi
    for process in "${begun[@]}"; do kill -- "-$process" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT

step() {                                           # step NAME COMMAND...: run the command, and record how long it took
    local began=$SECONDS
    running=$1
    shift
    printf '\n=== %s\n' "$running"
    "$@"
    report+=("$running: $((SECONDS - began)) s")
    running=""
}

begin() {                                          # begin NAME COMMAND...: run the command in parallel with the next steps
    local name=$1
    shift
    set -m                                         # its own process group, so that finish can kill it
    (
        trap - EXIT
        SECONDS=0
        "$@"
        echo "$SECONDS" >"$work/seconds of $name"
    ) >"$work/log of $name" 2>&1 &
    begun[$name]=$!
    set +m
}

await() {                                          # await NAME: wait for it, print its output, and fail if it failed
    local began=$SECONDS process=${begun[$1]}
    running=$1
    unset "begun[$1]"
    printf '\n=== %s\n' "$1"
    if wait "$process"; then
        cat "$work/log of $1"
    else
        cat "$work/log of $1" >&2
        return 1
    fi
    report+=("$1: $(cat "$work/seconds of $1") s, in parallel; waited $((SECONDS - began)) s")
    running=""
}

skipped() {                                        # skipped NAME REASON: print it, also in the summary
    printf '\n=== %s: skipped. %s\n' "$1" "$2"
    report+=("$1: skipped. $2")
}

in_a_clone() {                                     # enter a clean clone of HEAD, use the pinned versions, and install Python and Chromium if needed
    git -c safe.directory="$root" clone --quiet "$root" "$work/gradlab"
    cd "$work/gradlab"
    export PIP_CONSTRAINT="$PWD/.ci/constraints.txt" PIP_BUILD_CONSTRAINT="$PWD/.ci/constraints.txt"
    step "Python" install_venv
    step "Chromium" install_chromium
}

print_summary() {                                       # print the summary
    printf '\n=== All steps passed\n'
    printf '%s\n' "${report[@]}"
    printf '%s in all\n' "$((SECONDS / 60)) min $((SECONDS % 60)) s"
}

pip_install() { "$1" -m pip --quiet install --no-compile "${@:2}"; }       # pip_install PYTHON PACKAGE...: modules are compiled when they are imported
readme() { grep -E '^python3 -m venv ' README.md | sed -n "$1p"; }         # readme N: README's N-th command
tests_of() { "$1" -m pytest -q -n auto --dist "${@:2}" 2>&1 | tee "$work/pytest.log"; }     # tests_of PYTHON DIST ARGUMENT...
closing() { tail -n 1 "$work/pytest.log"; }
unpinned() { (unset PIP_CONSTRAINT PIP_BUILD_CONSTRAINT; "$@"); }          # run a command with the versions that pip chooses
