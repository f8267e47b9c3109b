/// All requests of the worker: those on the tenants' sockets, and HTTP answers that wait for a
/// lease. Answers `request.list` and `request.stop`, and stops requests for their owners.
///
///   caller ─► HTTP thread: answers and their choices ─► tenants' thread: requests ─► caller
///
/// No call waits for a step of the engine.
///
/// Lifetime: everything in Dependencies outlives it. Threads: any.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/requests.hpp"
#include "worker/program/http_service.hpp"
#include "worker/serve/tenant_server.hpp"

namespace leasehold {

/// The end of a request that an operator, or a client of its tenant over HTTP, has cancelled.
Error cancelled_by_operator();
Error cancelled_by_owner();

class RequestDirectory {
 public:
  struct Dependencies {
    boost::asio::io_context* io = nullptr;         ///< Runs the broker's link.
    boost::asio::io_context* tenant_io = nullptr;  ///< Runs `server`.
    TenantServer* server = nullptr;
    HttpService* http = nullptr;
    const Clock* clock = nullptr;
  };
  explicit RequestDirectory(const Dependencies& dependencies) : deps_(dependencies) {}

  static bool answers(std::string_view method);
  /// Answers a call of the broker. Only on the I/O thread.
  void on_call(const std::string& method, const control::Json& body, control::Responder respond);

  /// Stops these requests, and with each the other choices of its HTTP answer. `done` gets the ids
  /// of those that were found; it is called on any thread.
  using OnStopped = http::Server::OnStopped;
  void stop(std::vector<std::string> ids, Error why, OnStopped done);

  /// Lists the tenant's resumable requests whose clients have left. `done` is called on any thread.
  using OnListed = http::Server::OnListed;
  void list_detached(const TenantId& tenant, OnListed done);

 private:
  void list(wire::RequestList list, control::Responder respond);

  Dependencies deps_;
};

}  // namespace leasehold
