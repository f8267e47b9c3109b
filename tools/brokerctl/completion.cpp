#include "tools/brokerctl/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace leasehold::brokerctl {
namespace {

/// Every command as `"path word"`, where path is the words before it: " leases", "leases list".
std::vector<std::string> steps(std::span<const Command> tree) {
  std::vector<std::string> found;
  for (const Command& command : tree)
    for (const std::string& word : command.commands)
      found.push_back(fmt::format("\"{} {}\"", command.path, word));
  return found;
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

/// `--state) REPLY "Live Revoked Fenced"` for options with a closed list. An option has the same
/// list in every command.
std::string value_cases(std::span<const Command> tree, std::string_view reply) {
  std::string cases;
  std::set<std::string> seen;
  for (const Command& command : tree) {
    for (const CommandOption& option : command.options) {
      const bool is_new = !option.values.empty() && !option.is_positional &&
                          seen.insert(option.names.front()).second;
      if (!is_new) continue;
      cases += fmt::format("    {}) {}; return ;;\n", fmt::join(option.names, "|"),
                           fmt::format(fmt::runtime(reply), fmt::join(option.values, " ")));
    }
  }
  return cases;
}

std::string place_cases(std::span<const Command> tree, std::string_view reply) {
  std::string cases;
  for (const Command& command : tree) {
    std::vector<std::string> words = words_after(command, tree.front());
    for (const CommandOption& option : command.options)
      if (option.is_positional)
        words.insert(words.end(), option.values.begin(), option.values.end());
    cases += fmt::format("    \"{}\") {} ;;\n", command.path,
                         fmt::format(fmt::runtime(reply), fmt::join(words, " ")));
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
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) line += " -x";
  if (!option.values.empty()) line += fmt::format(" -a '{}'", fmt::join(option.values, " "));
  return line + " -d " + quoted(option.help) + "\n";
}

}  // namespace

std::string bash_completion(std::span<const Command> tree) {
  return fmt::format(R"(# Completion of brokerctl for bash, made by `brokerctl completion bash`.
_brokerctl() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} place= word i
  case $before in
{}  esac
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${{COMP_WORDS[i]}}
    case "$place $word" in
      {}) place="${{place:+$place }}$word" ;;
    esac
  done
  case $place in
{}  esac
}}
complete -F _brokerctl brokerctl
)",
                     value_cases(tree, "COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))"),
                     fmt::join(steps(tree), "|"),
                     place_cases(tree, "COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))"));
}

std::string zsh_completion(std::span<const Command> tree) {
  return fmt::format(R"(#compdef brokerctl
# Completion of brokerctl for zsh, made by `brokerctl completion zsh`.
_brokerctl() {{
  local place= word
  case ${{words[CURRENT-1]}} in
{}  esac
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$place $word" in
      {}) place="${{place:+$place }}$word" ;;
    esac
  done
  case $place in
{}  esac
}}
if [[ $funcstack[1] = _brokerctl ]]; then _brokerctl "$@"; else compdef _brokerctl brokerctl; fi
)",
                     value_cases(tree, "compadd -- {}"), fmt::join(steps(tree), "|"),
                     place_cases(tree, "compadd -- {}"));
}

std::string fish_completion(std::span<const Command> tree) {
  std::string script =
      fmt::format(R"(# Completion of brokerctl for fish, made by `brokerctl completion fish`.
function __brokerctl_at
  set -l place ''
  for word in (commandline -opc)[2..-1]
    switch "$place $word"
      case {}
        set place (string trim "$place $word")
    end
  end
  test "$place" = "$argv"
end
complete -c brokerctl -f
)",
                  fmt::join(steps(tree), " "));
  for (const Command& command : tree) {
    for (const Command& part : tree) {
      const auto last = part.path.rfind(' ');
      const std::string parent = last == std::string::npos ? "" : part.path.substr(0, last);
      const std::string word = last == std::string::npos ? part.path : part.path.substr(last + 1);
      if (part.path.empty() || parent != command.path) continue;
      script += fmt::format("complete -c brokerctl -n '__brokerctl_at {}' -a {} -d {}\n", parent,
                            word, quoted(part.help));
    }
    for (const CommandOption& option : command.options) {
      if (!option.is_positional) {
        script += fish_option(command, option);
      } else if (!option.values.empty()) {
        script += fmt::format("complete -c brokerctl -n '__brokerctl_at {}' -a '{}'\n",
                              command.path, fmt::join(option.values, " "));
      }
    }
  }
  return script;
}

}  // namespace leasehold::brokerctl
