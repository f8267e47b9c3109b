/// What the worker's KV cache reports about requests, so that an index outside the worker
/// (ContextPilot) can forget the requests whose KV no longer exists.
///
///   running ──ended, nothing cached──► removed from the index
///      └────ended, blocks cached────► held ──last cached block evicted──► removed from the index
///
/// Admission, append, swap and prefix registration change nothing outside. Also after a rollback
/// of an admission, a swap-out without a buffer or a swap timeout the request lives on: its id
/// leaves with its end only. So these steps need no call.
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

  /// A block of the request is in the prefix cache. Precondition: its end is not reported yet.
  virtual void blocks_cached(const RequestId& engine_request_id) = 0;
  /// No block of the request is in the prefix cache any more: evicted, revoked with its lease, or
  /// replaced by an equal block or after a hash collision.
  virtual void last_cached_block_evicted(const RequestId& engine_request_id) = 0;
  /// No block of any request of the tenant is cached any more.
  virtual void tenant_revoked(const TenantId& tenant) = 0;
  /// No block of any request is cached any more.
  virtual void cache_reset() = 0;
};

}  // namespace leasehold
