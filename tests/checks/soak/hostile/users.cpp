#include "tests/checks/soak/hostile/users.hpp"

#include <poll.h>
#include <unistd.h>

namespace leasehold::soak {
namespace {

constexpr int kStartTimeout_ms = 10'000;

}  // namespace

Users Users::create(const ProgramStarter& programs) {
  if (::geteuid() != 0) return Users(false);
  auto child = programs.start("leasehold-attacker", {.arguments = {"--version"}, .uid = kFirst});
  if (!child) return Users(false);
  pollfd ended{child->pidfd().get(), POLLIN, 0};
  ::poll(&ended, 1, kStartTimeout_ms);
  return Users(child->status() == 0);
}

}  // namespace leasehold::soak
