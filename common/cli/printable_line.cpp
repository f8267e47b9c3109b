#include "common/cli/printable_line.hpp"

#include "common/cli/print_error.hpp"
#include "common/utf8.hpp"

namespace leasehold {

std::string printable_line(std::string_view text, std::size_t max_bytes) {
  std::string line;
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    const bool is_character = step.kind == Utf8Kind::Character;
    const std::string_view next = is_character ? text.substr(0, step.size_bytes) : "\uFFFD";
    if (line.size() + next.size() > max_bytes) break;
    line += next;
    text.remove_prefix(step.size_bytes);
  }
  return printable(line);
}

}  // namespace leasehold
