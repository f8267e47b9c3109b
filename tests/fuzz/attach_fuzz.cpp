// Segments of another process: a lease table or a worker segment with any content. Input: one byte
// for seals and role, eight for a lease, then the segment.
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"
#include "tests/fuzz/memory_file.hpp"

using namespace leasehold;

namespace {

// Seals that fix the size, or with two more bits any other set of seals.
unsigned seals_of(std::uint8_t byte) {
  return (byte & 0x0F) ^ unsigned { F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
}

void use_table(UniqueFd fd, LeaseId lease) {
  const Result<TableReader> table = TableReader::attach(std::move(fd));
  if (!table) return;
  const Result<LeaseDependency> dependency = table->dependency(lease);
  fuzz::check(dependency.has_value() == (lease.slot < table->slot_count()));
  (void)table->word_of(lease);
  (void)table->deadline(lease);
  (void)table->drain_deadline(lease);
  (void)table->word_stored_at(lease);
  for (std::uint32_t worker = 0; worker < kMaxWorkers; ++worker) {
    (void)table->revocations(WorkerId{worker}).load();
  }
}

void use_worker_segment(UniqueFd fd) {
  const Result<WorkerSegmentWriter> line = WorkerSegmentWriter::attach(std::move(fd));
  if (!line) return;
  for (std::uint32_t thread = 0; thread < kMaxGateThreads; ++thread)
    line->announce(thread).store(1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input{{data, size}};
  const std::uint8_t how = input.byte();
  const LeaseId lease{input.number<std::uint32_t>(), input.number<std::uint32_t>()};
  const UniqueFd fd = fuzz::memory_file(input.rest(), seals_of(how));
  if ((how & 0x10) != 0) {
    use_worker_segment(fd.duplicate().value());
  } else {
    use_table((how & 0x20) != 0 ? fd.duplicate().value() : fuzz::read_only(fd), lease);
  }
  return 0;
}
