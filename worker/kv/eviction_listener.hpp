/// Receives the events of requests and their KV blocks, so that an index outside the worker
/// (ContextPilot) can remove the requests whose KV no longer exists.
///
///   open ──ended, no block holds its text──► removed from the index
///     └────ended, blocks cached────► held ──the last one gone──► removed from the index
///
/// Swaps, spills and rolled-back admissions do not end a request, so they are not reported.
///
/// Threads: any; a call returns quickly and never waits for the index.
#pragma once

#include "common/ids.hpp"

namespace leasehold {

class KvEvictionListener {
 public:
  virtual ~KvEvictionListener() = default;

  /// A request was admitted; a repeated request may use the same id again.
  virtual void admitted(const RequestId& engine_request_id) = 0;
  /// The request completed or was aborted. Repeated calls have no effect.
  virtual void ended(const RequestId& engine_request_id) = 0;

  /// Blocks hold text of the request: blocks of its sequence, and later of the prefix cache.
  /// Precondition: the end of the request is not reported yet.
  virtual void kv_held(const RequestId& engine_request_id) = 0;
  /// No block holds text of the request any more: the blocks were freed, evicted, lost with the
  /// lease, or replaced because of an equal block or a hash collision. Called once for each
  /// `kv_held`.
  virtual void kv_gone(const RequestId& engine_request_id) = 0;
};

}  // namespace leasehold
