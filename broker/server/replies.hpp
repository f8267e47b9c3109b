/// Calls that wait for their reply, and the descriptors that replies carry.
///
/// Threads: the io_context's thread.
#pragma once

#include <map>

#include "broker/books/answers.hpp"
#include "broker/memory/lent_memory.hpp"
#include "broker/server/connections/worker_links.hpp"
#include "broker/server/lease_waits.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

class Replies {
 public:
  Replies(const LeaseTable& table, const LentMemory& memory, WorkerLinks& links,
          LeaseWaits lease_waits)
      : table_(table), memory_(memory), links_(links), lease_waits_(std::move(lease_waits)) {}

  CallId add(control::Responder responder);

  /// Sends the reply with the descriptors that it names. Does nothing if the caller has
  /// disconnected.
  void answer(CallId call, const Result<Answer>& answer);

  /// The calls that wait for no decision, but for what several decisions lead to.
  LeaseWaits& lease_waits() { return lease_waits_; }

 private:
  Result<control::Payload> payload(const Answer& answer);
  Result<std::vector<UniqueFd>> descriptors(const Answer& answer);

  const LeaseTable& table_;
  const LentMemory& memory_;
  WorkerLinks& links_;
  std::uint64_t next_ = 1;
  std::map<CallId, control::Responder> waiting_;
  LeaseWaits lease_waits_;
};

}  // namespace leasehold
