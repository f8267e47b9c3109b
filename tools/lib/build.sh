# Sourced by the scripts of tools/ that run a program of this tree. Expects bash, `set -euo
# pipefail`, and the variable `root`: the root of the clone.

# build_programs NAME PRESET TARGET...
# Installs missing packages, configures (with the options in the array `configure_options`, if it is
# set), and builds the targets; changes to $root. Shows the build's progress on a terminal; otherwise
# writes to build/logs/NAME-build.log. Exits with 1 when the build fails.
build_programs() {
  local name=$1 preset=$2 log=build/logs/$1-build.log
  shift 2
  "$root/tools/setup"
  cd "$root"
  mkdir -p build/logs
  cmake --preset "$preset" ${configure_options[@]+"${configure_options[@]}"} >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; echo "$name: cannot configure the build; see $log" >&2; exit 1; }
  if [[ -t 2 ]]; then
    echo "$name: building ($preset); the first build takes some minutes" >&2
    cmake --build "build/$preset" --target "$@" >&2 || { echo "$name: the build failed" >&2; exit 1; }
  else
    cmake --build "build/$preset" --target "$@" >>"$log" 2>&1 ||
      { tail -n 40 "$log" >&2; echo "$name: the build failed; see $log" >&2; exit 1; }
  fi
}

# absolute_paths NAME OPTIONS ARGUMENT...
# Sets `arguments` to the ARGUMENTs, with the value after each of OPTIONS ("--model --text") made
# absolute: the script changes its directory. Accepts --option=VALUE, leaves "-" as it is, and keeps the
# name of a value NAME=PATH.
absolute_paths() {
  local name=$1 options=" $2 " prefix
  shift 2
  arguments=()
  while [[ $# -gt 0 ]]; do
    if [[ $1 == --*=* && $options == *" ${1%%=*} "* ]]; then
      set -- "${1%%=*}" "${1#*=}" "${@:2}"
    fi
    if [[ $options == *" $1 "* ]]; then
      [[ $# -ge 2 ]] || { echo "$name: $1 needs a file" >&2; exit 2; }
      prefix=
      [[ ! $2 =~ ^[A-Za-z_][A-Za-z0-9_]*= ]] || prefix=${BASH_REMATCH[0]}
      if [[ $2 == - ]]; then arguments+=("$1" -); else arguments+=("$1" "$prefix$(realpath -m -- "${2#"$prefix"}")"); fi
      shift
    else
      arguments+=("$1")
    fi
    shift
  done
}

# refuse_unknown_options NAME SOURCE...
# Exits with 2 if `arguments` contains an option that appears in no SOURCE, a file or a folder of the
# program's sources. To be called before the build, which takes minutes.
refuse_unknown_options() {
  local program=$1 argument option
  for argument in "${arguments[@]}"; do
    option=${argument%%=*}
    [[ $option != --* || $option =~ ^--(help|man|version)$ ]] ||
      grep -qrF --include=*.cpp --include=*.py -e "\"$option\"" -e "\"!$option\"" "${@:2}" ||
      { echo "$program: there is no option $option; --help lists them" >&2; exit 2; }
  done
}
