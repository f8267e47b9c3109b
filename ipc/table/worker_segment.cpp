#include "ipc/table/worker_segment.hpp"

#include <fmt/format.h>

#include "common/expects.hpp"

namespace leasehold {
namespace {

/// Maps the object and checks its header.
Result<Mapping> map_checked(const MemoryObject& object) {
  if (object.size_bytes() != worker_segment_size_bytes()) {
    return fail(Errc::UntrustedSegment,
                fmt::format("a worker segment has {} bytes, this one has {}",
                            worker_segment_size_bytes(), object.size_bytes()));
  }
  Mapping mapping = TRY(Mapping::map(object.fd(), object.size_bytes(), MapAccess::ReadWrite));
  const WorkerSegmentHeader& header = WorkerSegmentView<const std::byte>{mapping.data()}.header();
  if (header.abi_version.load(std::memory_order_acquire) != kSegmentAbiVersion ||
      header.magic != kWorkerSegmentMagic) {
    return fail(Errc::UntrustedSegment, "the worker segment has another version than this program");
  }
  return mapping;
}

}  // namespace

Result<WorkerSegmentReader> WorkerSegmentReader::create() {
  const std::size_t size_bytes = worker_segment_size_bytes();
  MemoryObject object =
      TRY(MemoryObject::create({.name = "leasehold-worker-segment", .size_bytes = size_bytes}));
  Mapping mapping = TRY(Mapping::map(object.fd(), size_bytes, MapAccess::ReadWrite));
  WorkerSegmentHeader& header = WorkerSegmentView<std::byte>{mapping.data()}.header();
  header.magic = kWorkerSegmentMagic;
  header.size_bytes = size_bytes;
  header.abi_version.store(kSegmentAbiVersion, std::memory_order_release);
  return WorkerSegmentReader(std::move(object), std::move(mapping));
}

WorkerSegmentReader::Snapshot WorkerSegmentReader::snapshot() const {
  Snapshot seen{};
  for (std::uint32_t thread = 0; thread < kMaxGateThreads; ++thread) {
    seen[thread] = RevokeCore<>::snapshot(view().thread(thread).announce);
  }
  return seen;
}

bool WorkerSegmentReader::is_quiet_since(const Snapshot& seen, Touches scope) const {
  for (std::uint32_t thread = 0; thread < kMaxGateThreads; ++thread) {
    const std::atomic<std::uint64_t>& announce = view().thread(thread).announce;
    if (!RevokeCore<>::is_quiet_since(seen[thread], announce, scope)) return false;
  }
  return true;
}

Result<WorkerSegmentReader> WorkerSegmentReader::adopt(UniqueFd fd) {
  MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
  Mapping mapping = TRY(map_checked(object));
  return WorkerSegmentReader(std::move(object), std::move(mapping));
}

Result<WorkerSegmentWriter> WorkerSegmentWriter::attach(UniqueFd fd) {
  const MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
  Mapping mapping = TRY(map_checked(object));
  TRY(mapping.prefault(MapAccess::ReadWrite));
  (void)mapping.lock();  // best effort, as for the table
  return WorkerSegmentWriter(std::move(mapping));
}

WorkerSegmentWriter WorkerSegmentWriter::in_process(const WorkerSegmentReader& reader) {
  return WorkerSegmentWriter(reader.mapping_.borrowed());
}

std::atomic<std::uint64_t>& WorkerSegmentWriter::announce(std::uint32_t thread) const {
  expects(thread < kMaxGateThreads, "gate thread within the worker segment");
  return WorkerSegmentView<std::byte>{mapping_.data()}.thread(thread).announce;
}

}  // namespace leasehold
