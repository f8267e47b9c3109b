#include "tests/checks/runner/memory_check.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace leasehold::runner {
namespace {

constexpr std::uint64_t kStatBlockBytes = 512;  // unit of st_blocks, independent of st_blksize
constexpr std::size_t kChunkBytes = 256 * 1024;

}  // namespace

Result<MemoryReading> read_memory(const UniqueFd& object) {
  struct stat about{};
  if (::fstat(object.get(), &about) < 0) return fail_errno(Errc::SystemError, "fstat", errno);
  MemoryReading reading{.allocated_bytes =
                            static_cast<std::uint64_t>(about.st_blocks) * kStatBlockBytes};
  std::vector<char> chunk(kChunkBytes);
  off_t offset = 0;
  while (true) {
    const ssize_t got = ::pread(object.get(), chunk.data(), chunk.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(Errc::SystemError, "pread", errno);
    if (got == 0) return reading;
    reading.nonzero_bytes += static_cast<std::uint64_t>(
        std::count_if(chunk.begin(), chunk.begin() + got, [](char byte) { return byte != 0; }));
    offset += got;
  }
}

Result<std::vector<OpenedExtent>> open_extents(BrokerView& broker, LeaseId lease) {
  std::vector<OpenedExtent> opened;
  for (const wire::ExtentView& view : TRY(broker.extents())) {
    if (view.lease != lease) continue;
    OpenedExtent extent{.extent = view.extent, .lease = lease};
    extent.object = TRY(broker.open_extent(view.extent));
    extent.before = TRY(read_memory(extent.object));
    opened.push_back(std::move(extent));
  }
  return opened;
}

MemoryReading sum(const std::vector<MemoryReading>& readings) {
  MemoryReading total;
  for (const MemoryReading& reading : readings) {
    total.allocated_bytes += reading.allocated_bytes;
    total.nonzero_bytes += reading.nonzero_bytes;
  }
  return total;
}

}  // namespace leasehold::runner
