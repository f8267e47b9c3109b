/// The queries: the status, lists, and the memory of one extent.
#pragma once

#include <boost/asio/io_context.hpp>
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
  boost::asio::io_context& io;
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
  /// Calls `respond` once, perhaps later, from the io_context. Errors: BadRequest for parameters
  /// out of range, those of `key.check`, `extent.open` and the journal.
  void (*answer)(const ListSources& sources, const control::Json& params,
                 control::Responder respond);
  bool shows_touched = false;  ///< Needs a fresh count of the memory with pages.
};

std::span<const Query> queries();

}  // namespace leasehold
