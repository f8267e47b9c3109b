#include "tests/checks/soak/hostile/host.hpp"

#include <poll.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "tests/checks/local_system/small_disk.hpp"

namespace leasehold::soak {
namespace {

constexpr int kStartTimeout_ms = 10'000;
constexpr const char* kDiskSize = "12m";

}  // namespace

Users Users::create(const ProgramStarter& programs) {
  if (::geteuid() != 0) return Users(false);
  auto child = programs.start("leasehold-attacker", {.arguments = {"--version"}, .uid = kFirst});
  if (!child) return Users(false);
  pollfd ended{child->pidfd().get(), POLLIN, 0};
  ::poll(&ended, 1, kStartTimeout_ms);
  return Users(child->status() == 0);
}

Result<StateDisk> StateDisk::create() {
  return StateDisk(TRY(TemporaryDirectory::create("hostile-state")));
}

StateDisk::StateDisk(TemporaryDirectory directory) : directory_(std::move(directory)) {
  if (mount_small_disk(path(), kDiskSize)) size_bytes_ = std::filesystem::space(path()).capacity;
}

StateDisk::~StateDisk() {
  if (!path().empty() && size_bytes_ > 0) ::umount2(path().c_str(), MNT_DETACH);
}

std::uint64_t StateDisk::used_bytes() const {
  const auto space = std::filesystem::space(path());
  return space.capacity - space.free;
}

}  // namespace leasehold::soak
