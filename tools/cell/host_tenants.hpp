/// The tenants of the cell that this host serves: which it has a part of, and when the part is
/// looked at again.
///
/// A tenant is known here from the first request for one of its keys, or from a mail about it,
/// until its part is returned. The broker is asked for the requests of each tenant a few times a
/// second.
///
/// Lifetime: all that it is given outlives it. Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/messages/views.hpp"
#include "ipc/etcd/client.hpp"
#include "tools/cell/broker_link.hpp"
#include "tools/cell/host_tenant.hpp"
#include "tools/cell/tenant_steps.hpp"

namespace leasehold::cell {

class HostTenants : private etcd::WatchReceiver {
 public:
  static constexpr Duration kPoll = std::chrono::milliseconds(200);
  /// While the broker has not confirmed a lower limit.
  static constexpr Duration kFastPoll = std::chrono::milliseconds(20);
  static constexpr Duration kLookAgain = std::chrono::seconds(1);
  static constexpr Duration kKeyTimeout = std::chrono::seconds(2);
  static constexpr std::size_t kMaxTenants = 4'096;
  /// Unknown keys that are looked up at the same time.
  static constexpr std::size_t kMaxLookups = etcd::Client::kMaxCalls / 4;

  HostTenants(boost::asio::io_context& io, const Clock& clock, etcd::Client& etcd,
              BrokerLink& broker, CellName cell);

  /// Follows the mail of this host, and asks the broker.
  void start(const HostName& host);
  /// A membership begins, or ends: nothing. The broker has parts of zero then.
  void set_owner(std::optional<PartOwner> owner);
  /// A connection to the broker begins: it has the newest ceiling.
  void broker_attached();

  /// A worker asks for a key that its broker does not know: takes a part of its tenant, and gives
  /// the broker the key. Errors: BadToken for a key that the cell does not have; QuotaConcurrent
  /// while other hosts use the tenant's limits; CellLost outside of a membership; those of etcd and
  /// of the broker.
  boost::asio::awaitable<Result<void>> resolve(std::string hash);

 private:
  void on_listing(std::vector<etcd::KeyValue> entries, etcd::Revision revision) override;
  void on_events(std::vector<etcd::WatchEvent> events) override;
  void on_interrupted(const Error& error) override;

  boost::asio::awaitable<Result<etcd::RangeReply>> look_up(const std::string& key);
  HostTenant* find_or_add(const TenantId& tenant);
  void look_at_mail(std::string_view key);
  void wake(HostTenant& tenant);
  boost::asio::awaitable<void> drive(HostTenant& tenant);
  boost::asio::awaitable<Result<void>> step(HostTenant& tenant, PartOwner owner);
  void report(const HostTenant& tenant, const Error& error);
  boost::asio::awaitable<void> follow_mail();
  boost::asio::awaitable<void> ask_broker();
  bool look_at(const wire::TenantView& view);

  boost::asio::io_context& io_;
  const Clock& clock_;
  etcd::Client& etcd_;
  BrokerLink& broker_;
  CellName cell_;
  CellKeys keys_;
  TenantSteps steps_;
  std::size_t lookups_ = 0;
  boost::asio::steady_timer lookup_ended_;  // wakes one lookup that waits
  HostName host_;
  std::optional<PartOwner> owner_;
  std::map<TenantId, std::unique_ptr<HostTenant>> tenants_;
  std::set<TenantId> mailed_;       // with a mail for this host
  std::optional<Errc> last_error_;  // why the last step failed
};

}  // namespace leasehold::cell
