/// The worker segment: a worker's threads announce units in it, the broker waits for quiet.
#pragma once

#include <array>

#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "ipc/segment/launch_gate.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {

/// The broker's side: owns the memory object and reads announcements.
class WorkerSegmentReader {
 public:
  /// A fresh segment, all threads idle. Errors: OutOfMemory, SystemError.
  static Result<WorkerSegmentReader> create();

  /// Takes over a segment that outlived its broker. Errors: UntrustedSegment, OutOfMemory.
  static Result<WorkerSegmentReader> adopt(UniqueFd fd);

  /// A writable descriptor for the worker.
  Result<UniqueFd> writer_fd() const { return object_.fd().duplicate(); }

  /// Every thread's announcement, read after a change (seq_cst, pairs with GateCore::begin_unit).
  using Snapshot = std::array<std::uint64_t, kMaxGateThreads>;
  Snapshot snapshot() const;

  /// True once every unit that `seen` shows and that can reach `scope` has ended.
  bool is_quiet_since(const Snapshot& seen, Touches scope) const;

 private:
  friend class WorkerSegmentWriter;  // for WorkerSegmentWriter::in_process
  WorkerSegmentReader(MemoryObject object, Mapping mapping)
      : object_(std::move(object)), mapping_(std::move(mapping)) {}
  WorkerSegmentView<const std::byte> view() const { return {mapping_.data()}; }

  MemoryObject object_;
  Mapping mapping_;
};

/// The worker's side: its gates announce through this.
class WorkerSegmentWriter {
 public:
  /// Errors: UntrustedSegment, OutOfMemory.
  static Result<WorkerSegmentWriter> attach(UniqueFd fd);

  /// A writer over the reader's own mapping, for tests that run both in one process (see
  /// TableReader::in_process). The reader outlives it.
  static WorkerSegmentWriter in_process(const WorkerSegmentReader& reader);

  /// Precondition: thread < kMaxGateThreads.
  std::atomic<std::uint64_t>& announce(std::uint32_t thread) const;

 private:
  explicit WorkerSegmentWriter(Mapping mapping) : mapping_(std::move(mapping)) {}

  Mapping mapping_;
};

}  // namespace leasehold
