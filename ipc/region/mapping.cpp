#include "ipc/region/mapping.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <cstdint>

#include "common/machine/process.hpp"

namespace leasehold {
namespace bip = boost::interprocess;
namespace {

/// The interface that Boost.Interprocess requires of a mappable object.
struct DescriptorView {
  int fd;
  bip::mode_t mode;
  bip::mapping_handle_t get_mapping_handle() const { return {fd, false}; }
  bip::mode_t get_mode() const { return mode; }
};

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, missing in older headers

/// A reserved range of addresses, aligned so that huge pages can begin at its start.
class Reservation {
 public:
  explicit Reservation(std::size_t size_bytes) : size_bytes_(size_bytes) {
    if (size_bytes < kHugePage) return;
    void* const got = ::mmap(nullptr, size_bytes + kHugePage, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return;
    begin_ = static_cast<std::byte*>(got);
    address_ = begin_ + (-reinterpret_cast<std::uintptr_t>(begin_) & (kHugePage - 1));
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (begin_ == nullptr) return;
    if (!taken_) {
      ::munmap(begin_, size_bytes_ + kHugePage);
      return;
    }
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::byte* const end = address_ + ((size_bytes_ + page - 1) & ~(page - 1));
    if (address_ != begin_) ::munmap(begin_, static_cast<std::size_t>(address_ - begin_));
    if (end != begin_ + size_bytes_ + kHugePage) {
      ::munmap(end, static_cast<std::size_t>(begin_ + size_bytes_ + kHugePage - end));
    }
  }

  /// Null when nothing is reserved: the kernel chooses the address.
  void* address() const { return address_; }
  bip::map_options_t options() const {
    return address_ == nullptr ? bip::default_map_options : MAP_FIXED;
  }
  /// The mapping owns the addresses from here on.
  void taken() { taken_ = true; }

 private:
  std::size_t size_bytes_;
  std::byte* begin_ = nullptr;
  std::byte* address_ = nullptr;
  bool taken_ = false;
};

/// What one call collapses. Each call first waits until every core has put its new pages on the
/// lists that the kernel searches, so calls for single huge pages take several times as long. A
/// call cannot be interrupted, so its size is bounded.
constexpr std::size_t kCollapseBytes = 32 * kHugePage;

/// Collapses the range into huge pages: each needs one fault, one entry to unmap and one page to
/// release instead of 512. Collapsing needs at least one present page. Best effort. Skipped for
/// processes with a real-time class, where one prefault in a hundred took most of a second; the
/// cause was not traced. Source: madvise(2), MADV_COLLAPSE.
void collapse(std::byte* data, std::size_t size_bytes) {
  const auto misplaced = -reinterpret_cast<std::uintptr_t>(data) & (kHugePage - 1);
  if (size_bytes < misplaced || is_real_time_process()) return;
  std::byte* const begin = data + misplaced;
  const std::size_t whole_bytes = (size_bytes - misplaced) & ~(kHugePage - 1);
  for (std::size_t at = 0; at < whole_bytes; at += kCollapseBytes) {
    const std::size_t end = std::min(at + kCollapseBytes, whole_bytes);
    for (std::size_t page = at; page < end; page += kHugePage)
      if (::madvise(begin + page, 1, MADV_POPULATE_READ) != 0) return;  // prefault reports it
    if (::madvise(begin + at, end - at, kCollapse) != 0 && errno == EINVAL) return;
  }
}

}  // namespace

Mapping Mapping::borrowed() const {
  return Mapping(nullptr, data_, size_bytes_);
}

Mapping::Mapping(std::unique_ptr<Region> region, std::byte* data, std::size_t size_bytes)
    : region_(std::move(region)), data_(data), size_bytes_(size_bytes) {}
Mapping::Mapping(Mapping&&) noexcept = default;
Mapping& Mapping::operator=(Mapping&&) noexcept = default;
Mapping::~Mapping() = default;

Result<Mapping> Mapping::map(const UniqueFd& fd, std::size_t size_bytes, MapAccess access) {
  const auto mode = access == MapAccess::ReadWrite ? bip::read_write : bip::read_only;
  Reservation place(size_bytes);
  try {
    auto region = std::make_unique<Region>(DescriptorView{fd.get(), mode}, mode, 0, size_bytes,
                                           place.address(), place.options());
    place.taken();
    auto* data = static_cast<std::byte*>(region->get_address());
    ::madvise(data, size_bytes, MADV_DONTFORK);
    ::madvise(data, size_bytes, MADV_DONTDUMP);
    return Mapping(std::move(region), data, size_bytes);
  } catch (const bip::interprocess_exception& error) {
    const Errc code =
        error.get_error_code() == bip::out_of_memory_error ? Errc::OutOfMemory : Errc::SystemError;
    return fail(code, fmt::format("mapping {} bytes: {}", size_bytes, error.what()));
  }
}

Result<void> Mapping::prefault(MapAccess access) const {
  if (access == MapAccess::ReadWrite) collapse(data_, size_bytes_);
  return populate(access);
}

Result<void> Mapping::populate(MapAccess access) const {
  const int advice = access == MapAccess::ReadWrite ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  if (::madvise(data_, size_bytes_, advice) != 0) {
    return fail_errno(Errc::OutOfMemory, "madvise(MADV_POPULATE)", errno);
  }
  return {};
}

Result<void> Mapping::lock() const {
  if (::mlock(data_, size_bytes_) != 0) return fail_errno(Errc::SystemError, "mlock", errno);
  return {};
}

LeasedMapping::LeasedMapping(Mapping mapping, MapAccess access)
    : LeasedMapping(nullptr, {mapping.data(), mapping.size_bytes()}, access) {
  owner_ = std::make_shared<Mapping>(std::move(mapping));
}

Result<LeasedMapping> LeasedMapping::map(const UniqueFd& fd, std::size_t size_bytes,
                                         MapAccess access) {
  return LeasedMapping(TRY(Mapping::map(fd, size_bytes, access)), access);
}

}  // namespace leasehold
