/// The tenants of the cell that this host serves: which it has a part of, and when the part is
/// looked at again.
///
/// A tenant is known here from the first request for one of its keys, or from a mail about it,
/// until its part is returned. The broker reports each change of its requests.
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
#include "ipc/control/messages/cell/agent_calls.hpp"
#include "ipc/control/messages/views.hpp"
#include "ipc/etcd/client.hpp"
#include "tools/cell/broker_link.hpp"
#include "tools/cell/decide/due_tenants.hpp"
#include "tools/cell/host_tenant.hpp"
#include "tools/cell/tenant_steps.hpp"

namespace leasehold::cell {

class HostTenants : private etcd::WatchReceiver {
 public:
  /// How often it is checked whether tenants may be stepped again, after they could not.
  static constexpr Duration kTick = std::chrono::milliseconds(200);
  static constexpr Duration kWatchAgain = std::chrono::seconds(1);
  static constexpr Duration kKeyTimeout = std::chrono::seconds(2);
  static constexpr std::size_t kMaxTenants = 4'096;
  /// Unknown keys that are looked up at the same time.
  static constexpr std::size_t kMaxLookups = etcd::Client::kMaxCalls / 4;

  HostTenants(boost::asio::io_context& io, const Clock& clock, etcd::Client& etcd,
              BrokerLink& broker, CellName cell);

  /// Follows the mail of this host.
  void start(const HostName& host);
  /// A membership begins, or ends: nothing. The broker has parts of zero then.
  void set_owner(std::optional<PartOwner> owner, TimePoint ceiling);
  /// A connection to the broker begins: it has the newest ceiling.
  void broker_attached();
  /// A notification of the broker.
  void notified(const std::string& method, const wire::Json& params);

  /// A worker asks for a key that its broker does not know: takes a part of its tenant, if need be
  /// instead of the host that the text has moved from, and gives the broker the key. With strict
  /// moves no call names that host. Errors: BadToken for a key that the cell does not have;
  /// QuotaConcurrent while other hosts use the tenant's limits; CellLost outside of a membership;
  /// those of etcd and of the broker.
  boost::asio::awaitable<Result<void>> resolve(wire::KeyResolve asked);
  /// A worker has refused a request of the tenant, or got a moved text of it: looks for a larger
  /// part, if that was not done just now; for a moved text then a moment later. Does nothing for a
  /// tenant that this host does not serve.
  void wants_more(const wire::PartWant& wanted);

 private:
  void on_listing(std::vector<etcd::KeyValue> entries, etcd::Revision revision) override;
  void on_events(std::vector<etcd::WatchEvent> events) override;
  void on_interrupted(const Error& error) override;

  boost::asio::awaitable<Result<etcd::RangeReply>> look_up(const std::string& key);
  HostTenant* find_or_add(const TenantId& tenant);
  void look_at_mail(const etcd::KeyValue& mail);
  void wake(HostTenant& tenant);
  boost::asio::awaitable<void> drive(HostTenant& tenant);
  boost::asio::awaitable<Result<void>> step(HostTenant& tenant, PartOwner owner);
  void report(const HostTenant& tenant, const Error& error);
  boost::asio::awaitable<void> follow_mail();
  void ended(HostTenant& tenant, bool has_failed);
  void plan_step(HostTenant& tenant);
  void begin_step(HostTenant& tenant);
  Duration time_to_step() const;
  boost::asio::awaitable<void> follow_due();
  boost::asio::awaitable<void> list_parts();
  void take(wire::CellPartChanged changed);
  void confirm(HostTenant& tenant);

  boost::asio::io_context& io_;
  const Clock& clock_;
  etcd::Client& etcd_;
  BrokerLink& broker_;
  CellName cell_;
  CellKeys keys_;
  TenantSteps steps_;
  struct Lookups {
    explicit Lookups(boost::asio::io_context& io)
        : ended(io, boost::asio::steady_timer::time_point::max()) {}
    std::size_t running = 0;
    boost::asio::steady_timer ended;  // wakes one that waits
  } lookups_;
  HostName host_;
  std::optional<PartOwner> owner_;
  std::map<TenantId, std::unique_ptr<HostTenant>> tenants_;
  std::set<TenantId> mailed_;  // with a mail for this host
  struct Time {
    TimePoint ceiling;  // until when tenants may run here
    DueTenants due;
    boost::asio::steady_timer timer;  // cancelled when a tenant is due before `wakes`
    TimePoint wakes;
  } time_;
  struct Attachment {
    std::uint64_t number = 0;  // of the membership and the connection to the broker
    bool is_list_due = false;  // the broker may have parts that are not known here
  } attachment_;
  std::optional<Errc> last_error_;  // why the last step failed
};

}  // namespace leasehold::cell
