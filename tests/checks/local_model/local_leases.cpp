#include "tests/checks/local_model/local_leases.hpp"

#include "common/clock.hpp"

namespace leasehold {

Result<LocalLeases> LocalLeases::create(std::uint32_t slots) {
  LeaseTable table = TRY(LeaseTable::create(slots));
  UniqueFd table_fd = TRY(table.reader_fd());
  TableReader reader = TRY(TableReader::attach(std::move(table_fd)));
  WorkerSegmentReader segment = TRY(WorkerSegmentReader::create());
  UniqueFd segment_fd = TRY(segment.writer_fd());
  WorkerSegmentWriter writer = TRY(WorkerSegmentWriter::attach(std::move(segment_fd)));
  return LocalLeases{std::move(table), std::move(reader), std::move(segment), std::move(writer)};
}

void LocalLeases::store(LeaseId lease, LeaseState state) {
  const LeaseTable::LeaseChange flip{.lease = lease, .to = state, .reason = RevokeReason::Operator};
  table.store_words(WorkerId{0}, {&flip, 1}, SystemClock().now());
}

}  // namespace leasehold
