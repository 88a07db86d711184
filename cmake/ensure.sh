# Shell functions that the commands (tests/run, bench/run, .ci/run) share. Sourced by bash, from the project's root.

# Prints to standard error and ends the program.
die() {
  printf '%s\n' "$@" >&2
  exit 1
}

# Progress of a build: steps, share and time.
export NINJA_STATUS=${NINJA_STATUS-[%f of %t steps, %p, %e s] }

# What each package provides, as "package:probe", where the probe is a command on the path or a file. A package counts
# as present if its probe is there, so a user's own compiler or CMake serves as well.
needs_build="g++:c++ cmake:cmake ninja-build:ninja libeigen3-dev:/usr/include/eigen3/Eigen/Core
             nlohmann-json3-dev:/usr/include/nlohmann/json.hpp zlib1g-dev:/usr/include/zlib.h
             libprotozero-dev:/usr/include/protozero/pbf_reader.hpp"
needs_bench="libbenchmark-dev:/usr/include/benchmark/benchmark.h libcli11-dev:/usr/include/CLI/CLI.hpp
             libfmt-dev:/usr/include/fmt/format.h"
needs_tests="catch2:/usr/include/catch2/catch.hpp,/usr/include/catch2/catch_all.hpp pkg-config:pkg-config
             python3:python3 python3-pip:pip3,pip libopenmpi-dev:mpicxx openmpi-bin:mpirun"
needs_browser="chromium:chromium,chromium-browser,google-chrome,google-chrome-stable"
needs_format="clang-format-14:clang-format-14"
needs_tidy="clang-tidy-16:clang-tidy-16"
needs_clang="clang-16:clang++-16 clang-19:clang++-19"

# Whether any of the comma-separated commands or files exists.
present() {
  local probe
  for probe in ${1//,/ }; do
    case $probe in
      /*) [ -e "$probe" ] && return 0 ;;
      *) command -v "$probe" > /dev/null && return 0 ;;
    esac
  done
  return 1
}

# ensure NEED...: installs through apt the missing packages among the "package:probe" words. Without the right to do so,
# or without apt, it prints what to type and ends the program.
ensure() {
  local need missing=()
  for need in "$@"; do
    present "${need#*:}" || missing+=("${need%%:*}")
  done
  [ ${#missing[@]} -eq 0 ] && return 0

  local as_root=()
  local line="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  command -v apt-get > /dev/null ||
    die "Missing here, by the names of Debian's packages: ${missing[*]}." "Install them and run this again."
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null; then
      die "Missing: ${missing[*]}. As root, type" "  $line" "and run this again."
    elif ! sudo -n true 2> /dev/null && [ ! -t 0 ]; then
      die "Missing: ${missing[*]}. Type" "  sudo sh -c '$line'" "and run this again."
    fi
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q || echo "apt-get update failed; trying with the package lists that are there." >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}" < /dev/null ||
    die "apt-get could not install ${missing[*]}. Once that is mended, run this again."
}

# Whether this machine has an NVIDIA device, judged by files that its driver makes or by the list of devices. Tests name
# other files in LAMINA_NVIDIA_SIGNS, and then only these count.
nvidia_device() {
  local sign
  for sign in ${LAMINA_NVIDIA_SIGNS-/proc/driver/nvidia/version /dev/nvidiactl}; do
    [ -e "$sign" ] && return 0
  done
  [ -z "${LAMINA_NVIDIA_SIGNS+set}" ] && command -v lspci > /dev/null && lspci | grep -Eqi '(VGA|3D|Display).*nvidia'
}

# Whether CMake will find a CUDA compiler.
cuda_compiler() {
  local folder
  command -v "${CUDACXX:-nvcc}" > /dev/null && return 0
  for folder in "${CUDA_HOME-}" "${CUDA_PATH-}"; do
    [ -n "$folder" ] && [ -x "$folder/bin/nvcc" ] && return 0
  done
  return 1
}

# tell_of_cuda COMMAND...: if there is a device and no compiler for it, prints a line with what is left out and the
# command that adds it.
tell_of_cuda() {
  if nvidia_device && ! cuda_compiler; then
    echo "An NVIDIA device, and no CUDA compiler: the backends cuda and cudnn are left out. This adds them: $*"
  fi
}

# tell_of_refused_cuda TREE: if there is a device, and a CUDA compiler that the configured build tree cannot use, prints
# a line with CMake's reason.
tell_of_refused_cuda() {
  local why
  nvidia_device && cuda_compiler && [ -f "$1/CMakeCache.txt" ] || return 0
  ! grep -q '^LAMINA_CUDA:[A-Z]*=OFF$' "$1/CMakeCache.txt" || return 0
  why=$(sed -n 's/^LAMINA_CUDA_WHY:INTERNAL=//p' "$1/CMakeCache.txt")
  [ -z "$why" ] || echo "An NVIDIA device, and no use of its toolkit: $why. The backends cuda and cudnn are left out."
}

# configure_and_build PRESET JOBS [CMAKE_OPTION...]: builds with the tests, even if bench/run configured the tree
# without them.
configure_and_build() {
  local preset=$1 jobs=$2 whole=()
  shift 2
  if grep -qs '^LAMINA_BUILD_TESTS:BOOL=OFF' "build/$preset/CMakeCache.txt"; then
    whole=(-ULAMINA_BUILD_TESTS -ULAMINA_CUDA_HOST)
  fi
  cmake --preset "$preset" ${whole[@]+"${whole[@]}"} "$@"
  cmake --build --preset "$preset" --parallel "$jobs"
}
