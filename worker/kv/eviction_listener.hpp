/// What the worker reports about requests and their KV, so that an index outside the worker
/// (ContextPilot) can forget the requests whose KV no longer exists.
///
///   open ──ended, no block holds its text──► removed from the index
///     └────ended, blocks cached────► held ──the last one gone──► removed from the index
///
/// Swaps, spills and admissions that are rolled back do not end a request, so they make no call.
///
/// Threads: any; a call is short and never waits for the index.
#pragma once

#include "common/ids.hpp"

namespace leasehold {

class KvEvictionListener {
 public:
  virtual ~KvEvictionListener() = default;

  /// The request lives, also a repeated one that uses an id again.
  virtual void admitted(const RequestId& engine_request_id) = 0;
  /// The request completed or was aborted. Repeating it changes nothing.
  virtual void ended(const RequestId& engine_request_id) = 0;

  /// Blocks hold text of the request: of its sequence, and then of the prefix cache. Precondition:
  /// its end is not reported yet.
  virtual void kv_held(const RequestId& engine_request_id) = 0;
  /// No block holds its text any more: freed, evicted, gone with its lease, or replaced by an equal
  /// block or after a hash collision. Once for each `kv_held`.
  virtual void kv_gone(const RequestId& engine_request_id) = 0;
};

}  // namespace leasehold
