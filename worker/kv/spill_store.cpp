#include "worker/kv/spill_store.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold {
namespace {

constexpr std::uint64_t kFewestBuffers = 4;
constexpr std::uint64_t kMostBuffers = 64;

std::uint32_t buffers_for(std::uint64_t staging_bytes, std::uint64_t block_size_bytes) {
  return static_cast<std::uint32_t>(
      std::clamp(staging_bytes / block_size_bytes, kFewestBuffers, kMostBuffers));
}

}  // namespace

SpillStore::SpillStore(SpillFile file, std::uint64_t block_size_bytes, std::uint32_t buffers,
                       std::shared_ptr<std::byte> staging)
    : file_(std::move(file)),
      block_size_bytes_(block_size_bytes),
      slots_(static_cast<std::uint32_t>(
          std::min<std::uint64_t>(file_.size_bytes() / (block_size_bytes + LeaseSeal::kSealBytes),
                                  std::uint32_t{1} << 31))),
      buffers_(buffers),
      staging_(std::move(staging)),
      leased_staging_(staging_, {staging_.get(), buffers * block_size_bytes}, MapAccess::ReadWrite),
      sealed_(block_size_bytes + LeaseSeal::kSealBytes),
      owners_(buffers) {}

/// The staging memory comes from libsodium, which excludes it from core dumps and zeroes it when it
/// is freed.
Result<std::unique_ptr<SpillStore>> SpillStore::create(SpillFile file,
                                                       std::uint64_t block_size_bytes,
                                                       std::uint64_t staging_bytes) {
  if (file.size_bytes() < block_size_bytes + LeaseSeal::kSealBytes) {
    return fail(Errc::BadRequest,
                fmt::format("a spill file of {} bytes has no room for a block of {}; lend a larger "
                            "one",
                            file.size_bytes(), block_size_bytes));
  }
  const std::uint32_t buffers = buffers_for(staging_bytes, block_size_bytes);
  const std::uint64_t size_bytes = buffers * block_size_bytes;
  if (::sodium_init() < 0) return fail(Errc::SystemError, "libsodium cannot start; spill nothing");
  const std::shared_ptr<std::byte> staging(static_cast<std::byte*>(::sodium_malloc(size_bytes)),
                                           [](std::byte* at) { ::sodium_free(at); });
  if (staging == nullptr) {
    return fail(Errc::OutOfMemory,
                fmt::format("no memory for {} bytes of staging; lend no spill file", size_bytes));
  }
  std::fill_n(staging.get(), size_bytes, std::byte{0});
  return std::unique_ptr<SpillStore>(
      new SpillStore(std::move(file), block_size_bytes, buffers, staging));
}

Leased<std::byte> SpillStore::staging(std::uint32_t buffer, LeaseId lease) {
  expects(buffer < buffers_, "a staging buffer exists");
  set_owner(buffer, lease);
  return leased_staging_.writable_base() + static_cast<std::ptrdiff_t>(buffer * block_size_bytes_);
}

void SpillStore::forget(LeaseId lease) {
  const std::scoped_lock lock(plain_mutex_);
  for (std::uint32_t buffer = 0; buffer < buffers_; ++buffer)
    if (is_owner(buffer, lease)) clear(buffer);
}

void SpillStore::set_owner(std::uint32_t buffer, std::optional<LeaseId> owner) {
  const std::scoped_lock lock(owners_mutex_);
  owners_[buffer] = owner;
}

bool SpillStore::is_owner(std::uint32_t buffer, LeaseId lease) {
  const std::scoped_lock lock(owners_mutex_);
  return owners_[buffer] == lease;
}

void SpillStore::clear(std::uint32_t buffer) {
  std::ranges::fill(plain(buffer), std::byte{0});
  set_owner(buffer, std::nullopt);
}

std::span<std::byte> SpillStore::plain(std::uint32_t buffer) const {
  return {staging_.get() + buffer * block_size_bytes_, block_size_bytes_};
}

bool SpillStore::is_staging_clear() const {
  const std::span<const std::byte> all(staging_.get(), buffers_ * block_size_bytes_);
  return std::ranges::all_of(all, [](std::byte each) { return each == std::byte{0}; });
}

SpillAnswer SpillStore::execute(SpillJob job, const Clock& clock) {
  const TimePoint began = clock.now();
  Result<void> result = run(job);
  const bool holds_block = job.kind == SpillJob::Kind::Read && result;
  if (job.kind != SpillJob::Kind::End && !holds_block) {
    const std::scoped_lock lock(plain_mutex_);
    clear(job.buffer);
  }
  return {.job = std::move(job), .result = std::move(result), .duration = clock.now() - began};
}

Result<void> SpillStore::run(const SpillJob& job) {
  const std::uint64_t offset = job.slot * sealed_.size();
  const bool needs_key = job.kind == SpillJob::Kind::Write || job.kind == SpillJob::Kind::Read;
  if (needs_key && job.seal == nullptr)
    return fail(Errc::OutOfMemory, "no memory for the key of a lease; its blocks are not spilled");
  switch (job.kind) {
    case SpillJob::Kind::Write:
      TRY(seal(job));
      return file_.write(offset, sealed_);
    case SpillJob::Kind::Read:
      TRY(file_.read(offset, sealed_));
      return open(job);
    case SpillJob::Kind::End:
      job.seal->end_stream(job.block.stream);
      return {};
    case SpillJob::Kind::Clear:
      return {};
  }
  return {};
}

/// Clears the buffer as soon as its bytes are sealed, because the write to the disk may take long.
Result<void> SpillStore::seal(const SpillJob& job) {
  const std::scoped_lock lock(plain_mutex_);
  TRY(job.seal->seal(job.block, plain(job.buffer), sealed_));
  clear(job.buffer);
  return {};
}

Result<void> SpillStore::open(const SpillJob& job) {
  const std::scoped_lock lock(plain_mutex_);
  set_owner(job.buffer, job.lease);
  return job.seal->open(job.block, sealed_, plain(job.buffer));
}

}  // namespace leasehold
