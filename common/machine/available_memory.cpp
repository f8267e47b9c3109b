#include "common/machine/available_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "common/machine/text_file.hpp"

namespace leasehold {
namespace {

constexpr const char* kMeminfo = "/proc/meminfo";
constexpr std::size_t kMaxMeminfoBytes = 1 << 20;
constexpr const char* kOvercommitMemory = "/proc/sys/vm/overcommit_memory";

Result<std::uint64_t> bytes_of(std::string_view meminfo, std::string_view name) {
  const std::string key = fmt::format("\n{}:", name);
  const Error missing{Errc::FileCorrupt,
                      fmt::format("/proc/meminfo has no {} in kB; mount /proc", name)};
  const auto line = meminfo.find(key);
  if (line == std::string_view::npos) return std::unexpected(missing);
  std::string_view rest = meminfo.substr(line + key.size());
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  std::uint64_t kilobytes = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), kilobytes);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (error != std::errc() || !rest.starts_with(" kB") || kilobytes > UINT64_MAX >> 10)
    return std::unexpected(missing);
  return kilobytes << 10;
}

}  // namespace

Result<MachineMemory> machine_memory() {
  const std::string meminfo = TRY(read_text_file(kMeminfo, kMaxMeminfoBytes));
  return limited_by(TRY(parse_machine_memory(meminfo)), group_memory(system_file_reader()));
}

MachineMemory limited_by(MachineMemory memory, const std::optional<GroupMemory>& group) {
  if (!group) return memory;
  memory.available_bytes = std::min(memory.available_bytes, group->available_bytes);
  if (group->limit_bytes >= memory.total_bytes) return memory;
  memory.total_bytes = group->limit_bytes;
  memory.limit_file = group->limit_file;
  return memory;
}

Result<MachineMemory> parse_machine_memory(std::string_view meminfo) {
  const std::string lines = fmt::format("\n{}", meminfo);  // MemTotal is the first line
  MachineMemory memory;
  memory.total_bytes = TRY(bytes_of(lines, "MemTotal"));
  memory.available_bytes = TRY(bytes_of(lines, "MemAvailable"));
  return memory;
}

bool kernel_limits_pages() {
  return kernel_limits_pages(read_text_file(kOvercommitMemory, 64).value_or(""));
}

bool kernel_limits_pages(std::string_view overcommit_memory) {
  return !overcommit_memory.starts_with('0') && !overcommit_memory.starts_with('1');
}

Result<void> check_fits_machine(std::string_view option, std::uint64_t size_bytes,
                                const MachineMemory& memory) {
  if (size_bytes <= memory.total_bytes) return {};
  constexpr std::uint64_t kMiB = 1 << 20;
  const bool is_group = !memory.limit_file.empty();
  return fail(
      Errc::BadRequest,
      fmt::format(
          "{} is {} bytes, but this {} has {} bytes of memory, {} of them available; set {} "
          "to less than {}MiB{}",
          option, size_bytes, is_group ? "control group" : "machine", memory.total_bytes,
          memory.available_bytes, option, memory.total_bytes / kMiB,
          is_group ? ", or raise " + memory.limit_file : ""));
}

}  // namespace leasehold
