#include "common/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <vector>

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

}  // namespace

std::string not_empty(const std::string& text) {
  return text.empty() ? "must not be empty; leave the option out" : "";
}

std::optional<Usage> parse_cli_arguments(CLI::App& app, std::span<const std::string> arguments) {
  only_counts(app);
  app.failure_message([](const CLI::App*, const CLI::Error& error) { return error.what(); });
  try {
    // CLI11 expects the arguments in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
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
  std::cerr << format_error(program, usage) + '\n';
  return usage.exit_code;
}

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  const auto usage = parse_cli_arguments(app, std::vector<std::string>(argv + 1, argv + argc));
  if (!usage) return std::nullopt;
  return print_error(app.get_name(), *usage);
}

}  // namespace leasehold
