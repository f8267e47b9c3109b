/// Calls that wait for their reply, and the descriptors that replies carry.
///
/// Threads: the io_context's thread.
#pragma once

#include <map>

#include "broker/books/answers.hpp"
#include "broker/memory/lent_memory.hpp"
#include "broker/server/connections/worker_links.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

class Replies {
 public:
  Replies(const LeaseTable& table, const LentMemory& memory, WorkerLinks& links)
      : table_(table), memory_(memory), links_(links) {}

  CallId add(control::Responder responder);

  /// Sends the reply with the descriptors that it names. Does nothing if the caller has
  /// disconnected.
  void answer(CallId call, const Result<Answer>& answer);

 private:
  Result<control::Payload> payload(const Answer& answer);
  Result<std::vector<UniqueFd>> descriptors(const Answer& answer);

  const LeaseTable& table_;
  const LentMemory& memory_;
  WorkerLinks& links_;
  std::uint64_t next_ = 1;
  std::map<CallId, control::Responder> waiting_;
};

}  // namespace leasehold
