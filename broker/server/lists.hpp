/// Answers queries: status, lists, and the memory of one extent.
#pragma once

#include "broker/books/state.hpp"
#include "broker/journal/journal.hpp"
#include "broker/memory/memory_store.hpp"
#include "broker/memory/spill_space.hpp"
#include "broker/server/event_log.hpp"
#include "ipc/control/peer.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

struct ListSources {
  const State& state;
  const EventLog& log;
  const MemoryStore& memory;
  const SpillSpace& spill;
  const LeaseTable& table;
  journal::Journal& journal;
  TimePoint started;
  TimePoint now;
  bool allow_memory_check;
  std::uint64_t journal_faults;
};

/// Errors: BadRequest for parameters out of range, UnknownMethod, those of `extent.open`.
Result<control::Payload> answer_query(const ListSources& sources, const std::string& method,
                                      const control::Json& params);

}  // namespace leasehold
