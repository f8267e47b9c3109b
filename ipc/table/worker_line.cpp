#include "ipc/table/worker_line.hpp"

#include <fmt/format.h>

#include "common/expects.hpp"

namespace leasehold {
namespace {

/// Maps what says that it is a line.
Result<Mapping> map_checked(const MemoryObject& object) {
  if (object.size_bytes() != line_size_bytes()) {
    return fail(Errc::UntrustedSegment, fmt::format("a worker line has {} bytes, this one {}",
                                                    line_size_bytes(), object.size_bytes()));
  }
  Mapping mapping = TRY(Mapping::map(object.fd(), object.size_bytes(), MapAccess::ReadWrite));
  const LineHeader& header = LineView<const std::byte>{mapping.data()}.header();
  if (header.abi_version.load(std::memory_order_acquire) != kSegmentAbiVersion ||
      header.magic != kLineMagic) {
    return fail(Errc::UntrustedSegment, "the worker line has another version than this program");
  }
  return mapping;
}

}  // namespace

Result<LineReader> LineReader::create() {
  const std::size_t size_bytes = line_size_bytes();
  MemoryObject object =
      TRY(MemoryObject::create({.name = "leasehold-line", .size_bytes = size_bytes}));
  Mapping mapping = TRY(Mapping::map(object.fd(), size_bytes, MapAccess::ReadWrite));
  LineHeader& header = LineView<std::byte>{mapping.data()}.header();
  header.magic = kLineMagic;
  header.size_bytes = size_bytes;
  header.abi_version.store(kSegmentAbiVersion, std::memory_order_release);
  return LineReader(std::move(object), std::move(mapping));
}

LineReader::Snapshot LineReader::snapshot() const {
  Snapshot seen{};
  for (std::uint32_t thread = 0; thread < kMaxGateThreads; ++thread) {
    seen[thread] = RevokeCore<>::snapshot(view().thread(thread).announce);
  }
  return seen;
}

bool LineReader::is_quiet_since(const Snapshot& seen, Touches scope) const {
  for (std::uint32_t thread = 0; thread < kMaxGateThreads; ++thread) {
    const std::atomic<std::uint64_t>& announce = view().thread(thread).announce;
    if (!RevokeCore<>::is_quiet_since(seen[thread], announce, scope)) return false;
  }
  return true;
}

Result<LineReader> LineReader::adopt(UniqueFd fd) {
  MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
  Mapping mapping = TRY(map_checked(object));
  return LineReader(std::move(object), std::move(mapping));
}

Result<LineWriter> LineWriter::attach(UniqueFd fd) {
  const MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
  Mapping mapping = TRY(map_checked(object));
  TRY(mapping.prefault(MapAccess::ReadWrite));
  (void)mapping.lock();  // best effort, as for the table
  return LineWriter(std::move(mapping));
}

LineWriter LineWriter::beside(const LineReader& reader) {
  return LineWriter(reader.mapping_.borrowed());
}

std::atomic<std::uint64_t>& LineWriter::announce(std::uint32_t thread) const {
  expects(thread < kMaxGateThreads, "gate thread within the worker line");
  return LineView<std::byte>{mapping_.data()}.thread(thread).announce;
}

}  // namespace leasehold
