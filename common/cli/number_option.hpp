/// Numeric options with a range and a default.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace leasehold {

/// Adds the option. `value` holds its default and outlives the parse.
template <class Number, class Bound>
CLI::Option* add_number_option(CLI::App& app, const std::string& name, Number& value,
                               const std::string& help, Bound low, Bound high) {
  return app.add_option(name, value, help)->check(CLI::Range(low, high))->capture_default_str();
}

}  // namespace leasehold
