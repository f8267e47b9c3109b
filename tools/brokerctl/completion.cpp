#include "tools/brokerctl/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace leasehold::brokerctl {
namespace {

std::string_view parent_of(std::string_view path) {
  const auto last = path.rfind(' ');
  return last == std::string_view::npos ? "" : path.substr(0, last);
}

std::string_view last_word(std::string_view path) {
  return path.substr(path.rfind(' ') + 1);  // npos + 1 is 0
}

/// One case for each command and its aliases. It maps the parent's path and the word after it to
/// the command's path: `"get tenants"|"get tenant") place="get tenants" ;;`.
std::string steps(std::span<const Command> tree) {
  std::string lines;
  for (const Command& command : tree.subspan(1)) {
    const std::string_view parent = parent_of(command.path);
    std::string patterns = fmt::format("\"{} {}\"", parent, last_word(command.path));
    for (const std::string& alias : command.aliases)
      patterns += fmt::format("|\"{} {}\"", parent, alias);
    lines += fmt::format("      {}) place=\"{}\" ;;\n", patterns, command.path);
  }
  return lines;
}

bool is_of_cell(const Command& command) {
  return command.path == "cell" || command.path.starts_with("cell ");
}

/// The same as live_list for a command of `cell`, from etcd.
std::string cell_list(const std::string& name) {
  if (name == "--tenant" || name == "tenant") return "cell tenants";
  if (name == "host") return "cell hosts";
  return name == "key" ? "cell keys" : "";
}

/// The command of brokerctl that lists the present values of this option; empty if the broker does
/// not know them.
std::string live_list(const Command& command, const CommandOption& option) {
  const std::string& name = option.names.back();
  if (is_of_cell(command)) return cell_list(name);
  if (name == "--tenant" || name == "tenant") return "get tenants";
  if (name == "--worker" || name == "worker" || name == "old" || name == "new")
    return "get workers";
  if (name == "lease" && (command.path == "revoke" || command.path == "drain"))
    return "get leases --state Live";
  if (name == "--lease" || name == "lease") return "get leases";
  if (name == "--key" || name == "key") return "get keys";
  if (name == "id" && command.path == "requests cancel") return "get requests";
  if (name == "--adapter" || name == "adapter") return "get adapters";
  if (name == "extent") return "get extents";
  if (name == "memory") return "get quarantine";
  if (!option.is_positional || name != "name") return "";
  if (parent_of(command.path) == "get") return command.path;
  return last_word(command.path) == "list" ? fmt::format("get {}", parent_of(command.path)) : "";
}

/// The words that may follow a command: its subcommands, its options and the options of brokerctl.
std::vector<std::string> words_after(const Command& command, const Command& program) {
  std::vector<std::string> words = command.commands;
  std::set<std::string> seen;
  for (const Command* each : {&command, &program})
    for (const CommandOption& option : each->options)
      for (const std::string& name : option.names)
        if (!option.is_positional && seen.insert(name).second) words.push_back(name);
  return words;
}

/// `*"|"--state) REPLY "Live Revoked Fenced"` for options with a closed list, and
/// `*"|"--tenant) _brokerctl_names get tenants` for those whose values the broker knows. An option
/// has the same list in every command, but another one below `cell`, whose cases come first.
std::string value_cases(std::span<const Command> tree, std::string_view reply) {
  std::string of_cell;
  std::string others;
  std::set<std::pair<bool, std::string>> seen;
  for (const Command& command : tree) {
    const bool is_cell = is_of_cell(command);
    for (const CommandOption& option : command.options) {
      const std::string live = live_list(command, option);
      const bool has_list = !option.values.empty() || !live.empty();
      if (option.is_positional || !has_list) continue;
      if (!seen.insert({is_cell, option.names.front()}).second) continue;
      const std::string values =
          live.empty() ? fmt::format(fmt::runtime(reply), fmt::join(option.values, " "))
                       : "_brokerctl_names " + live;
      const std::string place = is_cell ? "\"cell\"*\"|\"" : "*\"|\"";
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(place + name);
      (is_cell ? of_cell : others) +=
          fmt::format("    {}) {}; return ;;\n", fmt::join(patterns, "|"), values);
    }
  }
  return of_cell + others;
}

std::string place_cases(std::span<const Command> tree, std::string_view reply) {
  std::string cases;
  for (const Command& command : tree) {
    std::vector<std::string> words = words_after(command, tree.front());
    std::string live;
    for (const CommandOption& option : command.options) {
      if (!option.is_positional) continue;
      words.insert(words.end(), option.values.begin(), option.values.end());
      if (live.empty()) live = live_list(command, option);
    }
    cases += fmt::format("    \"{}\") {}{}{} ;;\n", command.path,
                         fmt::format(fmt::runtime(reply), fmt::join(words, " ")),
                         live.empty() ? "" : "; _brokerctl_names ", live);
  }
  return cases;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char letter : text) out += letter == '\'' ? "\\'" : std::string(1, letter);
  return out + "'";
}

std::string fish_option(const Command& command, const CommandOption& option) {
  std::string line = fmt::format("complete -c brokerctl -n '__brokerctl_at {}'", command.path);
  if (command.path.empty()) line = "complete -c brokerctl";
  if (!option.is_positional) {
    for (const std::string& name : option.names)
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.value.empty()) line += " -x";
  }
  const std::string live = live_list(command, option);
  if (!option.values.empty()) line += fmt::format(" -a '{}'", fmt::join(option.values, " "));
  if (!live.empty()) line += fmt::format(" -a '(__brokerctl_names {})'", live);
  return line + (option.is_positional ? "" : " -d " + quoted(option.help)) + "\n";
}

}  // namespace

std::string bash_completion(std::span<const Command> tree) {
  return fmt::format(R"(# Completion of brokerctl for bash, made by `brokerctl completion bash`.
# Adds the names that a list of the broker has now; none if it does not answer.
_brokerctl_names() {{
  local name
  while IFS= read -r name; do
    [[ $name =~ ^[[:alnum:]._:/-]+$ && $name == "$current"* ]] && COMPREPLY+=("$name")
  done < <(timeout 1 "${{COMP_WORDS[0]}}" "${{broker[@]}}" "$@" "${{config[@]}}" -o name 2>/dev/null)
}}
_brokerctl() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} place= word i
  local broker=() config=()
  COMPREPLY=()
  for ((i = 1; i + 1 < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
      --socket|--broker) broker=(--socket "${{COMP_WORDS[i+1]}}") ;;
      --config) config=(--config "${{COMP_WORDS[i+1]}}") ;;
    esac
  done
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${{COMP_WORDS[i]}}
    case "$place $word" in
{}    esac
  done
  case "$place|$before" in
{}  esac
  case $place in
{}  esac
}}
complete -F _brokerctl brokerctl
)",
                     steps(tree),
                     value_cases(tree, "COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))"),
                     place_cases(tree, "COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))"));
}

std::string zsh_completion(std::span<const Command> tree) {
  return fmt::format(R"zsh(#compdef brokerctl
# Completion of brokerctl for zsh, made by `brokerctl completion zsh`.
# Adds the names that a list of the broker has now; none if it does not answer.
_brokerctl_names() {{
  compadd -- ${{(f)"$(timeout 1 $words[1] $broker "$@" $config -o name 2>/dev/null)"}}
}}
_brokerctl() {{
  local place= word i
  local -a broker config
  for ((i = 2; i + 1 < CURRENT; ++i)); do
    case ${{words[i]}} in
      --socket|--broker) broker=(--socket ${{words[i+1]}}) ;;
      --config) config=(--config ${{words[i+1]}}) ;;
    esac
  done
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$place $word" in
{}    esac
  done
  case "$place|${{words[CURRENT-1]}}" in
{}  esac
  case $place in
{}  esac
}}
if [[ $funcstack[1] = _brokerctl ]]; then _brokerctl "$@"; else compdef _brokerctl brokerctl; fi
)zsh",
                     steps(tree), value_cases(tree, "compadd -- {}"),
                     place_cases(tree, "compadd -- {}"));
}

std::string fish_completion(std::span<const Command> tree) {
  std::string script =
      R"(# Completion of brokerctl for fish, made by `brokerctl completion fish`.
# Prints the names that a list of the broker has now; none if it does not answer.
function __brokerctl_names
  set -l words (commandline -opc)
  set -l broker
  set -l config
  for i in (seq 2 (count $words))
    contains -- $words[$i] --socket --broker; and set broker --socket $words[(math $i + 1)]
    test "$words[$i]" = --config; and set config --config $words[(math $i + 1)]
  end
  timeout 1 $words[1] $broker $argv $config -o name 2>/dev/null
end
function __brokerctl_at
  set -l place ''
  for word in (commandline -opc)[2..-1]
    switch "$place $word"
)";
  for (const Command& command : tree.subspan(1)) {
    script += "      case";
    std::vector<std::string> names = command.aliases;
    names.insert(names.begin(), std::string(last_word(command.path)));
    for (const std::string& name : names)
      script += fmt::format(" \"{} {}\"", parent_of(command.path), name);
    script += fmt::format("\n        set place \"{}\"\n", command.path);
  }
  script += R"(    end
  end
  test "$place" = "$argv"
end
complete -c brokerctl -f
)";
  for (const Command& command : tree) {
    for (const Command& part : tree) {
      if (part.path.empty() || parent_of(part.path) != command.path) continue;
      script += fmt::format("complete -c brokerctl -n '__brokerctl_at {}' -a {} -d {}\n",
                            command.path, last_word(part.path), quoted(part.help));
    }
    for (const CommandOption& option : command.options) {
      const bool has_values = !option.values.empty() || !live_list(command, option).empty();
      if (!option.is_positional || has_values) script += fish_option(command, option);
    }
  }
  return script;
}

}  // namespace leasehold::brokerctl
