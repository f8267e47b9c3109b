/// What CLI11 lets through on a command line and no program of ours wants.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace leasehold {

/// Options for unsigned numbers take nothing else from now on: -1 and what fits into no 64 bits are
/// errors of usage, not other numbers. To be called when all options are there, subcommands too.
inline void only_counts(CLI::App& app) {
  const auto is_count = [](const std::string& text) {
    std::uint64_t count = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, count);
    return error == std::errc() && stopped == end ? std::string()
                                                  : "'" + text +
                                                        "' is no count: digits, at most "
                                                        "18446744073709551615";
  };
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name().starts_with("UINT")) option->check(is_count, "");
  }
  for (CLI::App* part : app.get_subcommands({})) only_counts(*part);
}

}  // namespace leasehold
