#include "common/cli/config_file.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "common/cli/command_line.hpp"
#include "common/cli/size_option.hpp"
#include "common/cli/suggest.hpp"
#include "common/cli/toml_file.hpp"
#include "common/machine/text_file.hpp"
#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr const char* kCheck = "--check-config";
constexpr const char* kPrint = "--print-config";

/// The type that an option's TOML value must have.
enum class Kind { Flag, Size, Integer, Number, Text };

Kind kind_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() == 0) return Kind::Flag;
  if (type.ends_with("SIZE")) return Kind::Size;
  if (type.starts_with("UINT") || type.starts_with("INT")) return Kind::Integer;
  return type.starts_with("FLOAT") ? Kind::Number : Kind::Text;
}

struct KindRow {
  const char* description;
  std::vector<TomlType> types;  ///< The types that a value may have.
};

const KindRow& row_of(Kind kind) {
  static const KindRow kRows[]{
      {"true or false", {TomlType::Boolean}},
      {"a size, such as \"256MiB\"", {TomlType::Integer, TomlType::String}},
      {"an integer", {TomlType::Integer}},
      {"a number", {TomlType::Integer, TomlType::Float}},
      {"a string, in quotes", {TomlType::String}}};
  return kRows[static_cast<unsigned>(kind)];
}

bool takes_many(const CLI::Option& option) {
  return option.get_items_expected_max() > 1;
}

/// The options that are keys, in the order of the help.
std::vector<const CLI::Option*> keys_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) {
    return option->get_configurable() && !option->get_lnames().empty();
  });
}

const std::string& key_of(const CLI::Option& option) {
  return option.get_lnames().front();
}

Result<CLI::Option*> find_option(CLI::App& app, const std::string& key) {
  std::vector<std::string> known;
  for (const CLI::Option* option : keys_of(app)) {
    known.push_back(key_of(*option));
    if (known.back() == key) return app.get_option("--" + key);
  }
  const std::string near = nearest(key, known);
  return fail(Errc::BadRequest, fmt::format("unknown key '{}'; {}", key,
                                            near.empty() ? "--print-config prints all keys"
                                                         : "did you mean '" + near + "'?"));
}

Result<void> check_type(const TomlEntry& entry, const CLI::Option& option) {
  if (entry.is_array && entry.values.empty() && takes_many(option)) {
    return fail(Errc::BadRequest,
                fmt::format("{} is an empty array; give a value, or leave the key out", entry.key));
  }
  const auto& [description, types] = row_of(kind_of(option));
  bool fits = !entry.values.empty() && (!entry.is_array || takes_many(option));
  for (const TomlValue& value : entry.values)
    fits = fits && std::ranges::count(types, value.type) > 0;
  if (!fits) {
    return fail(Errc::BadRequest,
                fmt::format("{} must be {}{}, not of type {}", entry.key, description,
                            takes_many(option) ? ", or an array" : "", entry.type_name()));
  }
  for (const TomlValue& value : entry.values) {
    if (value.text.empty()) {
      return fail(
          Errc::BadRequest,
          fmt::format("the value of {} is empty; give one, or leave the key out", entry.key));
    }
  }
  return {};
}

/// Evaluates the option with the values of the file. A value from the command line or environment
/// wins, but the file's value is still checked.
Result<void> apply(const TomlEntry& entry, CLI::Option& option) {
  const std::vector<std::string> given = option.results();
  option.clear();
  for (const TomlValue& value : entry.values) option.add_result(value.text);
  try {
    option.run_callback();
  } catch (const CLI::Error& error) {
    return fail(Errc::BadRequest, error.what());
  }
  if (given.empty()) return {};
  option.clear();
  option.add_result(given);
  return {};
}

Result<void> apply(const TomlEntry& entry, CLI::App& app) {
  CLI::Option* const option = TRY(find_option(app, entry.key));
  TRY(check_type(entry, *option));
  return apply(entry, *option);
}

void apply_file(CLI::App& app, const std::string& path) {
  const Result<std::string> text = read_trusted_file(path, kMaxBytes);
  if (!text) throw ConfigErrors{{text.error()}};
  const auto entries = parse_toml(*text);
  if (!entries) throw ConfigErrors{{{entries.error().code, path + ":" + entries.error().detail}}};
  ConfigErrors wrong;
  for (const TomlEntry& entry : *entries) {
    if (const auto applied = apply(entry, app); !applied) {
      wrong.errors.push_back({applied.error().code,
                              fmt::format("{}:{}: {}", path, entry.line, applied.error().detail)});
    }
  }
  if (!wrong.errors.empty()) throw wrong;
}

Result<std::string> toml_value(const CLI::Option& option, const std::string& text) {
  switch (kind_of(option)) {
    case Kind::Flag:
      return text == "true" || text == "1" ? "true" : "false";
    case Kind::Integer:
    case Kind::Number:
      return text;
    case Kind::Size:
      return toml_string(size_text(TRY(parse_size(text))));
    case Kind::Text:
      break;
  }
  if (is_utf8(text)) return toml_string(text);
  return fail(Errc::BadRequest, fmt::format("the value of --{} is not UTF-8 text; a configuration "
                                            "file can hold no other",
                                            key_of(option)));
}

/// `threads = 4`, or `# state-dir =` for an option without value and default.
Result<std::string> assignment(const CLI::Option& option) {
  std::vector<std::string> values = option.results();
  const bool is_flag = kind_of(option) == Kind::Flag;
  if (values.empty() && is_flag) values = {"false"};
  if (values.empty() && !option.get_default_str().empty()) values = {option.get_default_str()};
  if (values.empty()) return fmt::format("# {} =", key_of(option));
  std::string joined;
  for (const std::string& value : values) {
    if (!joined.empty()) joined += ", ";
    joined += TRY(toml_value(option, value));
  }
  if (takes_many(option)) return fmt::format("{} = [{}]", key_of(option), joined);
  return fmt::format("{} = {}", key_of(option), joined);
}

}  // namespace

void add_config_options(CLI::App& app) {
  app.get_help_ptr()->configurable(false);
  if (app.get_version_ptr() != nullptr) app.get_version_ptr()->configurable(false);
  app.add_option_function<std::string>(
         "--config", [&app](const std::string& path) { apply_file(app, path); },
         "TOML file with options; a key is the name of an option, which wins over the file")
      ->configurable(false);
  app.add_flag(kCheck)
      ->description("Check all options and the file, print only errors, and exit")
      ->configurable(false);
  // Printing the configuration does not need the options that are required to start.
  app.add_flag_callback(kPrint,
                        [&app] {
                          for (CLI::Option* option : app.get_options()) option->required(false);
                        })
      ->description("Print the effective options as a TOML file and exit")
      ->configurable(false);
}

std::optional<int> finish_config(CLI::App& app, const std::function<Result<void>()>& check_files) {
  if (app.count(kPrint) > 0) {
    const Result<std::string> text = config_text(app);
    if (!text) return print_error(app.get_name(), text.error());
    std::cout << *text;
    return finish_program(app.get_name(), kExitOk);
  }
  if (app.count(kCheck) == 0) return std::nullopt;
  const Result<void> checked = check_files ? check_files() : Result<void>();
  return checked ? kExitOk : print_error(app.get_name(), checked.error());
}

Result<std::string> config_text(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : keys_of(app)) {
    text += fmt::format("{}# {}\n{}\n", text.empty() ? "" : "\n", option->get_description(),
                        TRY(assignment(*option)));
  }
  return text;
}

Result<ConfigValues> config_values(const CLI::App& app) {
  ConfigValues values;
  for (const CLI::Option* option : keys_of(app)) values[key_of(*option)] = TRY(assignment(*option));
  return values;
}

}  // namespace leasehold
