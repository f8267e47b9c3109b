/// Carries out what TenantPart decides for one tenant, against etcd and the broker.
///
/// Steps of one tenant run one after another, and each write to the ledger follows a check of the
/// tenant's keys: the broker then has no key that etcd has not, and none in an older form. So
/// `as_of` in the ledger also says that changes of keys by then are applied here.
///
/// Lifetime: all that it is given outlives it. Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "ipc/etcd/client.hpp"
#include "tools/cell/broker_link.hpp"
#include "tools/cell/host_tenant.hpp"

namespace leasehold::cell {

class TenantSteps {
 public:
  TenantSteps(etcd::Client& etcd, BrokerLink& broker, CellName cell)
      : etcd_(etcd), broker_(broker), cell_(std::move(cell)), keys_(cell_) {}

  /// Goes on from what the broker says of the tenant, for a membership. Does nothing while workers
  /// have not confirmed the part that the broker has: it is tried again. Errors: those of the
  /// broker.
  boost::asio::awaitable<Result<void>> resume(HostTenant& tenant, const PartOwner& owner);
  /// Runs until nothing is due, then answers the workers that ask for keys if this host has a part.
  /// Errors: those of etcd and of the broker; BadRequest for a ledger or a policy that is wrong;
  /// BadToken for a removed tenant that a worker asks for. What is due then remains due.
  boost::asio::awaitable<Result<void>> run(HostTenant& tenant, const PartOwner& owner);
  /// Removes a tenant without a part, with its keys, from the broker.
  boost::asio::awaitable<Result<void>> remove(HostTenant& tenant);

 private:
  template <class T>
  using Awaitable = boost::asio::awaitable<Result<T>>;
  Awaitable<void> send_limit(HostTenant& tenant, const PartOwner& owner);
  Awaitable<void> call_etcd(HostTenant& tenant, etcd::Transaction call);
  Awaitable<void> check_keys(HostTenant& tenant);
  Awaitable<void> check_key(HostTenant& tenant, const ApiKeyId& id,
                            const std::vector<etcd::KeyValue>& found);
  Awaitable<void> update_key(HostTenant& tenant, const ApiKeyId& id);
  Awaitable<void> revoke_key(HostTenant& tenant, const ApiKeyId& id);
  Awaitable<void> divide_key_limits(HostTenant& tenant);
  Awaitable<void> add_key(HostTenant& tenant, const std::string& hash);

  etcd::Client& etcd_;
  BrokerLink& broker_;
  CellName cell_;
  CellKeys keys_;
};

}  // namespace leasehold::cell
