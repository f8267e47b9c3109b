#include "common/cli/command_line.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <vector>

#include "common/cli/command_tree.hpp"
#include "common/cli/config_file.hpp"
#include "common/cli/man_page.hpp"
#include "common/ids.hpp"

namespace leasehold {
namespace {

std::string check_count(const std::string& text) {
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc() && stopped == end) return {};
  return fmt::format("'{}' is not a number from 0 to 18446744073709551615", text);
}

void only_counts(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name().starts_with("UINT")) option->check(check_count, "");
  }
  for (CLI::App* part : app.get_subcommands({})) only_counts(*part);
}

/// Finds `--name ''`, `--name=` and an empty word without an option.
std::optional<std::string> empty_value(std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool assigns_nothing = word.starts_with("--") && word.ends_with('=');
    if (!word.empty() && !assigns_nothing) continue;
    const std::string& before = assigns_nothing ? word : i > 0 ? arguments[i - 1] : word;
    const std::string name = before.substr(0, before.find('='));
    return fmt::format("{}: the value '' is empty; give one, or leave it out",
                       name.starts_with('-') ? name : "an argument");
  }
  return std::nullopt;
}

/// Ignores groups of options, which CLI11 stores as commands without a name.
bool has_commands(const CLI::App& app) {
  return std::ranges::any_of(app.get_subcommands({}),
                             [](const CLI::App* part) { return !part->get_name().empty(); });
}

/// Adds --man. The page is generated from the options of the program, so the two cannot differ.
void add_man_option(CLI::App& app) {
  const auto print = [&app] {
    throw CLI::CallForVersion(man_page(app.get_name(), command_tree(app)), 0);
  };
  if (app.get_option_no_throw("--man") != nullptr) return;  // the app was parsed before
  app.add_flag_callback("--man", print, "Print the manual page and exit")->configurable(false);
}

}  // namespace

std::string check_socket_path(const std::string& path) {
  constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMost) {
    return fmt::format("the path of a Unix socket has at most {} bytes, '{}' has {}", kMost, path,
                       path.size());
  }
  return check_file_path(path);
}

std::string check_name(const std::string& text) {
  const auto name = TenantId::parse(text);
  return name ? std::string() : name.error().detail;
}

std::string check_file_path(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {};
  return fmt::format("'{}' is a directory; name a file in it", path);
}

std::string check_directory_path(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) || std::filesystem::is_directory(path, ignored)) {
    return {};
  }
  return fmt::format("'{}' is not a directory; name another", path);
}

std::optional<Usage> parse_cli_arguments(CLI::App& app, std::span<const std::string> arguments) {
  if (auto text = empty_value(arguments)) return Usage{.text = *std::move(text)};
  if (!has_commands(app)) add_man_option(app);
  only_counts(app);
  app.failure_message([](const CLI::App*, const CLI::Error& error) { return error.what(); });
  try {
    // CLI11 expects the arguments in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const ConfigErrors& wrong) {
    const Errc code = wrong.errors.front().code;
    return Usage{.exit_code = code == Errc::BadRequest ? kExitUsage : exit_code(code),
                 .config_errors = wrong.errors};
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const bool was_asked_for = app.exit(error, text, text) == 0;
    return Usage{.exit_code = was_asked_for ? kExitOk : kExitUsage, .text = text.str()};
  }
  return std::nullopt;
}

std::string format_error(std::string_view program, const Usage& usage) {
  return fmt::format("{}: {}; next: {}", program, printable(usage.text),
                     error_hint(Errc::BadRequest));
}

int print_error(std::string_view program, const Usage& usage) {
  if (usage.exit_code == kExitOk) {
    std::cout << usage.text;
    return finish_program(program, kExitOk);
  }
  for (const Error& error : usage.config_errors) print_error(program, error);
  if (usage.config_errors.empty()) std::cerr << format_error(program, usage) + '\n';
  return usage.exit_code;
}

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  const auto usage = parse_cli_arguments(app, std::vector<std::string>(argv + 1, argv + argc));
  if (!usage) return std::nullopt;
  return print_error(app.get_name(), *usage);
}

}  // namespace leasehold
