#include "kernels/model/display_name.hpp"

#include "common/cli/printable_line.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxNameBytes = 256;  // limit of the broker: TextRule::Label

}  // namespace

std::string read_display_name(const GgufFile& file, std::string_view architecture) {
  const std::string fallback(architecture);
  const std::string name =
      printable_line(file.get_or<std::string>("general.name", fallback).value_or(fallback),
                     kMaxNameBytes);  // the name is only shown, so no name is refused
  return name.find_first_not_of(' ') == std::string::npos ? fallback : name;
}

}  // namespace leasehold
