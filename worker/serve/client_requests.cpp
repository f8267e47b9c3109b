#include "worker/serve/client_requests.hpp"

#include <fmt/format.h>

#include <utility>

#include "common/expects.hpp"
#include "worker/kv/request_ids.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxRequestsPerConnection = 256;
constexpr std::size_t kMaxRequests = 4096;  // over all tenants

}  // namespace

ClientRequests::ClientRequests(KvEvictionListener* listener)
    : listener_(listener), shares_(kMaxRequests) {}

Result<void> ClientRequests::check_capacity(std::uint64_t connection,
                                            const TenantId& tenant) const {
  const auto found = connections_.find(connection);
  const std::size_t n_requests =
      found == connections_.end() ? 0 : found->second.engine_request_ids.size();
  if (n_requests >= kMaxRequestsPerConnection) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("{} requests of this connection are running or waiting; retry when "
                            "one ends",
                            n_requests));
  }
  if (shares_.may_take_more(tenant)) return {};
  return fail(
      Errc::QueueFull,
      fmt::format("{} requests of tenant {} are running or waiting, its share of {} with {} "
                  "in use; retry when one ends",
                  shares_.held_by(tenant), tenant.value, kMaxRequests, shares_.taken()));
}

// --------------------------------------------------------------------------------------- requests

void ClientRequests::add(const RequestId& engine_request_id, ClientRequest request) {
  connections_.at(request.connection).engine_request_ids.insert(engine_request_id);
  const bool is_new = requests_.emplace(engine_request_id, std::move(request)).second;
  ensures(is_new, "a request id is in use once");
  shares_.take(tenant_of(engine_request_id));
}

ClientRequest* ClientRequests::find(const RequestId& engine_request_id) {
  const auto found = requests_.find(engine_request_id);
  return found == requests_.end() ? nullptr : &found->second;
}

ClientRequest* ClientRequests::find_parsed(const RequestId& engine_request_id) {
  ClientRequest* request = find(engine_request_id);
  return request != nullptr && request->is_parsed() ? request : nullptr;
}

ClientRequest& ClientRequests::parsed(const RequestId& engine_request_id, TextStream text) {
  ClientRequest& request = requests_.at(engine_request_id);
  request.text.emplace(std::move(text));
  if (listener_ != nullptr) listener_->admitted(engine_request_id);
  return request;
}

void ClientRequests::forget(const RequestId& engine_request_id) {
  const ClientRequest* request = find(engine_request_id);
  if (request == nullptr) return;
  if (request->is_parsed() && listener_ != nullptr) listener_->ended(engine_request_id);
  detach(engine_request_id);
  shares_.give_back(tenant_of(engine_request_id));
  requests_.erase(engine_request_id);
}

std::vector<RequestId> ClientRequests::unparsed() const {
  std::vector<RequestId> all;
  for (const auto& [engine_request_id, request] : requests_)
    if (!request.is_parsed()) all.push_back(engine_request_id);
  return all;
}

// ------------------------------------------------------------------------------------ connections

void ClientRequests::opened(const TenantConnection& connection) {
  connections_[connection.id].peer = connection.peer;
}

const std::weak_ptr<control::Peer>* ClientRequests::peer_of(std::uint64_t connection) const {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : &found->second.peer;
}

bool ClientRequests::has_requests(std::uint64_t connection) const {
  const auto found = connections_.find(connection);
  return found != connections_.end() && !found->second.engine_request_ids.empty();
}

Result<RequestId> ClientRequests::find_own(std::uint64_t connection,
                                           const RequestId& client_request_id) const {
  const auto found = connections_.find(connection);
  if (found != connections_.end()) {
    for (const RequestId& engine_request_id : found->second.engine_request_ids)
      if (to_client_request_id(engine_request_id) == client_request_id) return engine_request_id;
  }
  return fail(Errc::UnknownRequest,
              fmt::format("no request {} runs on this connection", client_request_id.value));
}

void ClientRequests::attach(const RequestId& engine_request_id, std::uint64_t connection) {
  detach(engine_request_id);
  ClientRequest* request = find(engine_request_id);
  if (request == nullptr) return;
  request->connection = connection;
  connections_.at(connection).engine_request_ids.insert(engine_request_id);
}

void ClientRequests::detach(const RequestId& engine_request_id) {
  ClientRequest* request = find(engine_request_id);
  if (request == nullptr) return;
  const auto from = connections_.find(std::exchange(request->connection, 0));
  if (from != connections_.end()) from->second.engine_request_ids.erase(engine_request_id);
}

std::set<RequestId> ClientRequests::closed(std::uint64_t connection) {
  auto found = connections_.extract(connection);
  if (!found) return {};
  for (const RequestId& engine_request_id : found.mapped().engine_request_ids)
    requests_.at(engine_request_id).connection = 0;
  return std::move(found.mapped().engine_request_ids);
}

}  // namespace leasehold
