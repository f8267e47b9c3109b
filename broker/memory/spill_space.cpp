#include "broker/memory/spill_space.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

namespace leasehold {

SpillSpace::~SpillSpace() {
  const std::scoped_lock lock(answers_->mutex);
  answers_->io = nullptr;
}

std::uint64_t SpillSpace::lent_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [worker, lent] : lent_) bytes += lent.size_bytes;
  return bytes;
}

std::uint64_t SpillSpace::next_size(uid_t uid) const {
  const std::uint64_t share = config_.capacity_bytes / std::max(1u, config_.users);
  std::uint64_t taken = 0;
  for (const auto& [worker, lent] : lent_)
    if (lent.uid == uid) taken += lent.size_bytes;
  if (taken >= share) return 0;
  return (share - taken) / 2 / kLeastFileBytes * kLeastFileBytes;
}

void SpillSpace::lend(AttachmentId worker, uid_t uid, OnFile on_file) {
  const auto found = lent_.find(worker);
  if (found != lent_.end() && !found->second.fd) {
    return on_file(fail(Errc::BadRequest,
                        "the spill file of this worker is being created; wait for the answer"));
  }
  if (found != lent_.end()) return on_file(file_of(found->second));
  if (config_.directory == nullptr) return on_file(File{});
  const std::uint64_t size_bytes = next_size(uid);
  if (size_bytes == 0) {
    return on_file(fail(
        Errc::PoolExhausted,
        fmt::format("{} of {} bytes are lent as spill files, and user {} has no room for another; "
                    "raise --spill-capacity, or end a worker",
                    lent_bytes(), config_.capacity_bytes, uid)));
  }
  lent_.emplace(worker, Lent{.uid = uid, .size_bytes = size_bytes, .on_file = std::move(on_file)});
  disk_.post([this, worker, size_bytes, directory = config_.directory, answers = answers_] {
    auto fd = directory->create_file(size_bytes);
    const std::scoped_lock lock(answers->mutex);
    if (answers->io == nullptr) return;
    boost::asio::post(*answers->io, [this, worker, fd = std::move(fd)]() mutable {
      created(worker, std::move(fd));
    });
  });
}

void SpillSpace::created(AttachmentId worker, Result<UniqueFd> fd) {
  auto node = lent_.extract(worker);
  Lent& lent = node.mapped();
  OnFile on_file = std::exchange(lent.on_file, nullptr);
  if (!fd) return on_file(std::unexpected(std::move(fd).error()));
  if (lent.is_forgotten) {
    disk_.post([fd = *std::move(fd)] {});  // the close frees the space
    return on_file(fail(Errc::ConnectionLost, "the worker has exited; attach again"));
  }
  lent.fd = *std::move(fd);
  on_file(file_of(lent_.insert(std::move(node)).position->second));
}

Result<SpillSpace::File> SpillSpace::file_of(const Lent& lent) const {
  return File{.fd = TRY(lent.fd.duplicate()), .size_bytes = lent.size_bytes};
}

Result<std::uint64_t> SpillSpace::size_of(const UniqueFd& fd) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return fail(Errc::UntrustedSegment, "a kept spill file is not a regular file; it is not used");
  constexpr std::int64_t kBlockBytes = 512;  // unit of st_blocks
  return static_cast<std::uint64_t>(
      std::min<std::int64_t>(status.st_size, status.st_blocks * kBlockBytes));
}

Result<void> SpillSpace::restore(AttachmentId worker, uid_t uid, UniqueFd fd) {
  const std::uint64_t size_bytes = TRY(size_of(fd));
  lent_.insert_or_assign(worker, Lent{.uid = uid, .size_bytes = size_bytes, .fd = std::move(fd)});
  return {};
}

/// A file that is still being created counts until it has been created and closed.
void SpillSpace::forget(AttachmentId worker) {
  const auto found = lent_.find(worker);
  if (found == lent_.end()) return;
  if (!found->second.fd) {
    found->second.is_forgotten = true;
    return;
  }
  disk_.post([fd = std::move(found->second.fd)] {
    if (::ftruncate(fd.get(), 0) == 0) return;
    spdlog::warn("could not free a spill file error={}", errno);
  });
  lent_.erase(found);
}

const UniqueFd* SpillSpace::find(AttachmentId worker) const {
  const auto found = lent_.find(worker);
  return found == lent_.end() || !found->second.fd ? nullptr : &found->second.fd;
}

}  // namespace leasehold
