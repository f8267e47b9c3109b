#include "tools/brokerctl/memory_name.hpp"

#include <fmt/format.h>

#include <charconv>

namespace leasehold::brokerctl {

Result<void> name_memory(const std::string& text, wire::QuarantineRelease& release) {
  const auto colon = text.find(':');
  const std::string kind = colon == std::string::npos ? "extent" : text.substr(0, colon);
  const std::string digits = text.substr(colon == std::string::npos ? 0 : colon + 1);
  std::uint64_t id = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  if (!whole || (kind != "extent" && kind != "region")) {
    return fail(Errc::BadRequest,
                fmt::format("'{}' is not a memory id; write extent:5 or region:3", text));
  }
  if (kind == "extent") release.extent = ExtentId{id};
  if (kind == "region") release.region = RegionId{id};
  return {};
}

}  // namespace leasehold::brokerctl
