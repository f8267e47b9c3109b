/// The queries: the status, lists, and the memory of one extent.
#pragma once

#include <span>
#include <string_view>

#include "broker/books/state.hpp"
#include "broker/journal/journal.hpp"
#include "broker/memory/memory_store.hpp"
#include "broker/memory/spill_space.hpp"
#include "broker/server/dispatch.hpp"
#include "broker/server/effects.hpp"
#include "broker/server/event_log.hpp"
#include "ipc/control/transport/peer.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

struct ListSources {
  const State& state;
  const EventLog& log;
  const MemoryStore& memory;
  const SpillSpace& spill;
  const LeaseTable& table;
  journal::Journal& journal;
  const ServerEffects& effects;
  const Clock& clock;
  TimePoint started;
  bool allow_memory_check;
};

struct Query {
  std::string_view method;
  Role role;
  /// Errors: BadRequest for parameters out of range, those of `key.check` and `extent.open`.
  Result<control::Payload> (*answer)(const ListSources& sources, const control::Json& params);
  bool shows_touched = false;  ///< Needs a fresh count of the memory with pages.
};

std::span<const Query> queries();

}  // namespace leasehold
