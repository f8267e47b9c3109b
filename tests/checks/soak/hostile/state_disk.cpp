#include "tests/checks/soak/hostile/state_disk.hpp"

#include <sys/mount.h>

#include <filesystem>

#include "tests/checks/local_system/small_disk.hpp"

namespace leasehold::soak {
namespace {

constexpr const char* kSize = "12m";

}  // namespace

Result<StateDisk> StateDisk::create() {
  return StateDisk(TRY(TemporaryDirectory::create("hostile-state")));
}

StateDisk::StateDisk(TemporaryDirectory directory) : directory_(std::move(directory)) {
  if (mount_small_disk(path(), kSize)) size_bytes_ = std::filesystem::space(path()).capacity;
}

StateDisk::~StateDisk() {
  if (!path().empty() && size_bytes_ > 0) ::umount2(path().c_str(), MNT_DETACH);
}

std::uint64_t StateDisk::used_bytes() const {
  const auto space = std::filesystem::space(path());
  return space.capacity - space.free;
}

}  // namespace leasehold::soak
