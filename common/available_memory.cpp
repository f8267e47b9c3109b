#include "common/available_memory.hpp"

#include <algorithm>
#include <charconv>

#include "common/text_file.hpp"

namespace leasehold {
namespace {

constexpr const char* kMeminfo = "/proc/meminfo";
constexpr std::size_t kMaxMeminfoBytes = 1 << 20;

}  // namespace

Result<std::uint64_t> available_memory_bytes() {
  return parse_available_memory(TRY(read_text_file(kMeminfo, kMaxMeminfoBytes)));
}

Result<std::uint64_t> parse_available_memory(std::string_view meminfo) {
  constexpr std::string_view kKey = "\nMemAvailable:";
  const Error missing{Errc::FileCorrupt, "/proc/meminfo has no MemAvailable in kB; mount /proc"};
  const auto key = meminfo.find(kKey);
  if (key == std::string_view::npos) return std::unexpected(missing);
  std::string_view rest = meminfo.substr(key + kKey.size());
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  std::uint64_t kilobytes = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), kilobytes);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (error != std::errc() || !rest.starts_with(" kB") || kilobytes > UINT64_MAX >> 10)
    return std::unexpected(missing);
  return kilobytes << 10;
}

}  // namespace leasehold
