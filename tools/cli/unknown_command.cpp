#include "tools/cli/unknown_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <vector>

#include "common/cli/suggest.hpp"

namespace leasehold::cli {
namespace {

/// Finds an option of `app` or of an app around it. Null for an unknown option.
const CLI::Option* own_option(const CLI::App* app, const std::string& word) {
  for (; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* option = app->get_option_no_throw(word)) return option;
  }
  return nullptr;
}

/// Also searches the commands and verbs of `app`.
const CLI::Option* option_named(const CLI::App& app, const std::string& word) {
  if (const CLI::Option* option = own_option(&app, word)) return option;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (const CLI::Option* option = command->get_option_no_throw(word)) return option;
    for (const CLI::App* verb : command->get_subcommands({})) {
      if (const CLI::Option* option = verb->get_option_no_throw(word)) return option;
    }
  }
  return nullptr;
}

/// An option's name without the value that is written to it: "--limit" of "--limit=5".
std::string name_of(const std::string& word) {
  return word.substr(0, word.find('='));
}

/// The number of words that the first option takes: itself and its value.
std::size_t option_length(const CLI::App& app, std::span<const std::string> words) {
  const CLI::Option* option = option_named(app, name_of(words.front()));
  const bool has_value =
      option != nullptr && option->get_items_expected_max() > 0 && !words.front().contains('=');
  return has_value && words.size() > 1 ? 2 : 1;
}

/// Removes and returns the first word that is neither an option nor the value of one. Empty without
/// such a word, and after an unknown option, because the next word may be its value.
std::string next_command(const CLI::App& app, std::span<const std::string>& words) {
  while (!words.empty()) {
    std::string word = words.front();
    if (!word.starts_with('-')) {
      words = words.subspan(1);
      return word;
    }
    if (word.starts_with("--") && option_named(app, name_of(word)) == nullptr) return "";
    words = words.subspan(option_length(app, words));
  }
  return "";
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    names.push_back(command->get_name());
    names.insert(names.end(), command->get_aliases().begin(), command->get_aliases().end());
  }
  return names;
}

/// Returns the verb with its noun, "tenants admit" for "admit", also for a verb that is misspelled.
std::string with_noun(const CLI::App& app, const std::string& verb) {
  for (const CLI::App* noun : app.get_subcommands({})) {
    const std::string near = nearest(verb, commands_of(*noun));
    if (!near.empty()) return noun->get_name() + " " + near;
  }
  return "";
}

bool is_one_of(const std::vector<std::string>& commands, const std::string& word) {
  return std::ranges::find(commands, word) != commands.end();
}

/// The end of an error sentence, with a hint if there is one. `near` is the known command that
/// resembles the first of `words`.
std::string suggestion(std::span<const std::string> words, const std::string& near,
                       const OtherWords& other) {
  const auto found = [words](const OtherWords::Find& find) {
    return find ? find(words) : std::string();
  };
  if (const std::string use = found(other.before_typos); !use.empty())
    return fmt::format("; use: {}.", use);
  if (!near.empty()) return fmt::format("; did you mean '{}'?", near);
  const std::string use = found(other.after_typos);
  return use.empty() ? "." : fmt::format("; use: {}.", use);
}

/// True if `app` is a verb that needs a noun, such as `get`.
bool takes_noun(const CLI::App& app) {
  return app.get_require_subcommand_min() > 0;
}

bool asks_for_help(std::span<const std::string> words) {
  return std::ranges::any_of(
      words, [](const std::string& word) { return word == "--help" || word == "-h"; });
}

/// Explains a second word that the command does not have. `words` begin with the command.
std::optional<std::string> unknown_verb(const CLI::App& noun, std::span<const std::string> words,
                                        const OtherWords& other) {
  const auto verbs = commands_of(noun);
  if (verbs.empty()) return std::nullopt;
  const std::string& command = words.front();
  auto left = words.subspan(1);
  const bool is_help = asks_for_help(left);
  const std::string verb = next_command(noun, left);
  if (takes_noun(noun) && verb.empty() && left.empty() && !is_help)
    return fmt::format("'{}' needs a noun. Nouns: {}", command, fmt::join(verbs, ", "));
  if (verb.empty() || is_one_of(verbs, verb)) return std::nullopt;
  std::vector<std::string> typed{command, verb};
  typed.insert(typed.end(), left.begin(), left.end());
  const std::string_view kind = takes_noun(noun) ? "noun" : "verb";
  return fmt::format("'{}' has no {} '{}'{} {}: {}", command, kind, verb,
                     suggestion(typed, nearest(verb, verbs), other),
                     takes_noun(noun) ? "Nouns" : "Verbs", fmt::join(verbs, ", "));
}

}  // namespace

std::optional<std::string> unknown_command(const CLI::App& app, std::span<const std::string> words,
                                           const OtherWords& other) {
  const auto commands = commands_of(app);
  if (words.empty())
    return fmt::format("a command is missing. Commands: {}", fmt::join(commands, ", "));
  const std::string command = next_command(app, words);
  if (command.empty()) return std::nullopt;
  std::vector<std::string> typed{command};
  typed.insert(typed.end(), words.begin(), words.end());
  if (is_one_of(commands, command)) return unknown_verb(*app.get_subcommand(command), typed, other);
  std::string near = nearest(command, commands);
  if (near.empty()) near = with_noun(app, command);
  return fmt::format("there is no command '{}'{} Commands: {}", command,
                     suggestion(typed, near, other), fmt::join(commands, ", "));
}

std::vector<std::string> options_behind_command(const CLI::App& app,
                                                std::span<const std::string> words) {
  std::vector<std::string> result;
  std::vector<std::string> moved;
  while (!words.empty() && words.front().starts_with('-')) {
    const std::size_t length = option_length(app, words);
    const bool is_common = own_option(&app, name_of(words.front())) != nullptr;
    const auto option = words.first(length);
    std::ranges::copy(option, std::back_inserter(is_common ? result : moved));
    words = words.subspan(length);
  }
  const CLI::App* noun = &app;
  while (!words.empty() && is_one_of(commands_of(*noun), words.front())) {
    noun = noun->get_subcommand(words.front());
    result.push_back(words.front());
    words = words.subspan(1);
  }
  std::ranges::copy(moved, std::back_inserter(result));
  std::ranges::copy(words, std::back_inserter(result));
  return result;
}

}  // namespace leasehold::cli
