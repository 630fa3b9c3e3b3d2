# Test the lowest versions that pyproject.toml allows, and gradlab beside PyTorch with NumPy 1.26. Sourced by .ci/run and .ci/full.

oldest=""                                          # a Python for which these versions have wheels

find_oldest() {
    local name
    if oldest=$(python_of_floors); then return; fi
    oldest=""
    for name in "The lowest versions" "Beside PyTorch and NumPy 1.26"; do
        skipped "$name" "Their wheels need Python 3.11 or 3.12. Neither was found, and none could be installed."
    done
}

elsewhere() {                                      # copy the tests to a separate folder, so that they import the installed package
    mkdir -p "$work/elsewhere"
    cp -r tests pyproject.toml "$work/elsewhere"
    cd "$work/elsewhere"
}

install_lowest() {                                 # the lowest versions of pyproject.toml, exactly; but NumPy 2.0, which gradlab's own
    # tensors require (install_beside has the explorers' NumPy 1.26)
    "$oldest" -m venv "$work/lowest"
    mapfile -t floors < <("$oldest" -c '
import tomllib
for floor in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]:
    print("numpy==2.0" if floor.startswith("numpy") else floor.replace(">=", "=="))')
    echo "${floors[@]}"
    unpinned pip_install "$work/lowest/bin/python" "${floors[@]}" 'pytest==8.2.*' pytest-xdist 'ipykernel<7' .
}

test_lowest() { (elsewhere; tests_of "$work/lowest/bin/python" loadfile -W "ignore:Auto-close" "$@"); }

install_beside() {                                 # installing gradlab changes no version of an existing PyTorch and NumPy 1.26
    local torch
    torch=$("$oldest" -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["oracle"][0])')
    "$oldest" -m venv "$work/beside"
    unpinned pip_install "$work/beside/bin/python" "$torch" 'numpy==1.26.*' ipykernel 'pytest>=8.2' pytest-xdist
    "$work/beside/bin/python" -m pip freeze >"$work/before"
    unpinned pip_install "$work/beside/bin/python" .
    if "$work/beside/bin/python" -m pip freeze | grep -vxFf - "$work/before"; then
        echo "Installing gradlab changed these versions." >&2
        return 1
    fi
}

test_beside() {                                    # test_beside FILE...: test the explorers and the doctor there
    (elsewhere; tests_of "$work/beside/bin/python" loadfile -m 'torch and not e2e' "$@")
}
