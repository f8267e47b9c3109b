/// Options that take a number of bytes, such as --capacity 256MiB. The same form in every program.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace leasehold {

/// Digits with an optional unit, whatever its case: b, or k, m, g, t, p, e with an optional i, b
/// or ib; all are powers of 1024. "256MiB", "256 m" and "268435456" are the same. Errors:
/// BadRequest, which names the form.
Result<std::uint64_t> parse_size(const std::string& text);

/// "256MiB", in the largest unit that divides it.
std::string size_text(std::uint64_t size_bytes);

struct SizeRange {
  std::uint64_t low = 0;
  std::uint64_t high = ~std::uint64_t{0};
  bool or_zero = false;  ///< 0 is accepted, too.
};

/// Adds the option. `value` outlives the parse.
CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& value,
                             const std::string& help, SizeRange range = {});

}  // namespace leasehold
