/// Runs work that would delay the connections of the HTTP server, such as parsing long bodies. It
/// has two threads, and tenants take turns, so that one tenant alone cannot block the others.
///
/// Threads: any.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <utility>

#include "common/ids.hpp"
#include "common/machine/process.hpp"
#include "common/turns.hpp"

namespace leasehold::http {

class WorkPool {
 public:
  /// Runs the work in the tenant's turn.
  void run(const TenantId& tenant, Turns<TenantId>::Work work) {
    turns_.add(tenant, std::move(work));
    boost::asio::post(threads_, [this] {
      static thread_local const bool is_set_up = set_up_thread();
      if (is_set_up) turns_.do_next();
    });
  }

  /// Drops work that has not begun, and waits for the rest.
  void stop() {
    threads_.stop();
    threads_.join();
  }

 private:
  static bool set_up_thread() {
    set_thread_name("http-parse");
    use_batch_scheduling();
    return true;
  }

  Turns<TenantId> turns_;
  boost::asio::thread_pool threads_{2};
};

}  // namespace leasehold::http
