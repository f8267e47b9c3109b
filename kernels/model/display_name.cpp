#include "kernels/model/display_name.hpp"

#include "common/cli/print_error.hpp"
#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxNameBytes = 256;  // limit of the broker: TextRule::Label

/// Makes a name printable: one line of whole characters, at most `kMaxNameBytes` long. The name is
/// only shown in clients and logs, so no name is refused.
std::string display_name(std::string_view name) {
  std::string shown;
  while (!name.empty()) {
    const Utf8Step step = next_utf8(name);
    const bool is_character = step.kind == Utf8Kind::Character;
    const std::string_view next = is_character ? name.substr(0, step.size_bytes) : "\uFFFD";
    if (shown.size() + next.size() > kMaxNameBytes) break;
    shown += next;
    name.remove_prefix(step.size_bytes);
  }
  return printable(shown);
}

}  // namespace

std::string read_display_name(const GgufFile& file, std::string_view architecture) {
  const std::string fallback(architecture);
  const std::string name =
      display_name(file.get_or<std::string>("general.name", fallback).value_or(fallback));
  return name.find_first_not_of(' ') == std::string::npos ? fallback : name;
}

}  // namespace leasehold
