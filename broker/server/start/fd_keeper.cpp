#include "broker/server/start/fd_keeper.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <charconv>
#include <cstdlib>

#include "common/machine/service_manager.hpp"

namespace leasehold {
namespace {

/// Owns the array that sd_listen_fds_with_names allocates.
class Names {
 public:
  Names() = default;
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  ~Names() {
    for (char** name = list_; name != nullptr && *name != nullptr; ++name) std::free(*name);
    std::free(static_cast<void*>(list_));
  }
  char*** slot() { return &list_; }
  std::string at(int i) const { return list_[i]; }

 private:
  char** list_ = nullptr;
};

}  // namespace

namespace kept {

std::string segment(std::uint64_t attachment) {
  return fmt::format("segment-{}", attachment);
}
std::string wakeup_fd(std::uint64_t attachment) {
  return fmt::format("wakeup_fd-{}", attachment);
}
std::string pidfd(std::uint64_t attachment) {
  return fmt::format("pidfd-{}", attachment);
}
std::string spill(std::uint64_t attachment) {
  return fmt::format("spill-{}", attachment);
}
std::string weights(std::uint64_t region) {
  return fmt::format("weights-{}", region);
}

std::optional<std::string> shortage(const char* fdstore, std::uint32_t needed) {
  if (fdstore == nullptr) return std::nullopt;
  const std::string_view text = fdstore;
  std::uint64_t stored = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), stored);
  if (error != std::errc() || end != text.data() + text.size() || stored >= needed)
    return std::nullopt;
  return fmt::format(
      "the service manager stores {} descriptors, the broker up to {}: a restart "
      "would end workers or weights beyond; set FileDescriptorStoreMax={}",
      stored, needed, needed);
}

}  // namespace kept

Result<void> FdKeeper::keep(std::string_view name, const UniqueFd& fd) {
  // FDPOLL=0, because a readable pidfd or eventfd must stay in the store.
  const std::string message = fmt::format("FDSTORE=1\nFDNAME={}\nFDPOLL=0", name);
  TRY(send_to_service_manager(message, fd));
  names_.emplace(name);
  return {};
}

void FdKeeper::remove(std::string_view name) {
  notify_service_manager(fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name));
  if (const auto found = names_.find(name); found != names_.end()) names_.erase(found);
}

void FdKeeper::remove_all() {
  while (!names_.empty()) remove(std::string(*names_.begin()));
}

Result<KeptDescriptors> KeptDescriptors::from_service_manager() {
  Names names;
  const int count = ::sd_listen_fds_with_names(1, names.slot());
  if (count < 0) return fail_errno(Errc::SystemError, "read the LISTEN_FDS variables", -count);
  KeptDescriptors kept;
  std::set<std::string> duplicates;
  for (int i = 0; i < count; ++i) {
    UniqueFd fd(SD_LISTEN_FDS_START + i);
    const std::string name = names.at(i);
    if (kept.has(name)) duplicates.insert(name);
    kept.add(name, std::move(fd));
  }
  for (const std::string& name : duplicates) kept.take(name);
  return kept;
}

void KeptDescriptors::add(std::string name, UniqueFd fd) {
  stored_.insert(name);
  by_name_[std::move(name)] = std::move(fd);
}

UniqueFd KeptDescriptors::take(std::string_view name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return {};
  UniqueFd fd = std::move(found->second);
  by_name_.erase(found);
  return fd;
}

std::set<std::string, std::less<>> KeptDescriptors::names() const {
  std::set<std::string, std::less<>> names;
  for (const auto& [name, fd] : by_name_) names.insert(name);
  return names;
}

}  // namespace leasehold
