/// The agent of a host: the real decisions about its membership and its parts, in the order in
/// which the agent's program takes them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "broker/server/views/tenant_views.hpp"
#include "tests/simulation/cell/host_worker.hpp"
#include "tests/simulation/cell/mail_watch.hpp"
#include "tests/simulation/cell/terms.hpp"
#include "tools/cell/decide/broker_part.hpp"
#include "tools/cell/decide/membership.hpp"
#include "tools/cell/decide/part_schedule.hpp"

namespace leasehold::cell::simulation {

class HostAgent {
 public:
  HostAgent(Network& network, const Terms& terms, Machine& machine, BrokerProcess& broker);

  void start();
  /// The process is killed and started again, with its state directory or without.
  void restart(bool keeps_directory);
  void broker_restarted();
  /// What the broker sends to the agent of this connection.
  void notify(ConnectionId connection, const wire::CellPartChanged& changed);
  /// A worker asks for a part of the tenant.
  void resolve(std::size_t tenant, const std::optional<HostName>& moved_from,
               HostWorker::OnResolved done);
  /// A worker notifies the agent that it could use more of the part.
  void wants_more(std::size_t tenant, const std::optional<HostName>& moved_from);
  /// Something was written to etcd.
  void etcd_changed() { watch_.etcd_changed(); }
  bool is_member() const { return membership_->is_member(); }

 private:
  /// HostTenant of the program.
  struct HostedTenant {
    HostedTenant(const CellKeys& keys, TenantId id) : part(keys, std::move(id)) {}

    TenantPart part;
    TenantDemand demand;
    PartSchedule schedule;
    std::uint64_t timer = 0;  // the newest one
    std::uint64_t sent = 0;
    std::vector<HostWorker::OnResolved> asked;
    std::optional<wire::CellPartChanged> changed;  // the newest one of this connection
    std::optional<PartOwner> step_owner;           // of the steps that run
    bool is_resumed = false;
    bool is_at_broker = false;
    bool is_busy = false;
    bool is_due_again = false;
  };
  using OnAnswer = HostBroker::OnAnswer;
  using OnViews = std::function<void(const Result<std::vector<wire::TenantView>>&)>;

  // Membership.
  void beat();
  void beaten(const Result<MembershipChange>& change);
  bool has_lost_broker();
  void set_membership();
  void set_owner(std::optional<PartOwner> owner);
  // The broker.
  void keep_connected();
  void attach();
  void send_ceiling();
  /// Runs at the broker, and `then` here. Without the connection, `then` gets ConnectionLost.
  void ask(std::function<void(HostBroker&, TimePoint, OnAnswer)> call, OnAnswer then);
  void ask_views(OnViews then);
  void lose_connection();
  ConnectionId connection() const { return ConnectionId{100 + connection_}; }
  void attached();
  void list_parts();
  void take(const wire::CellPartChanged& changed);
  void confirm(HostedTenant& hosted);
  // Steps of one tenant.
  std::size_t index_of(const TenantId& id) const;
  std::uint32_t requests_of(const HostedTenant& hosted) const;
  HostedTenant* find_or_add(std::size_t tenant);
  void look_at_mail(const TenantId& id, std::string_view value);
  void wake(std::size_t tenant);
  void plan_step(std::size_t tenant);
  void begin_step(std::size_t tenant);
  void drive(std::size_t tenant);
  void advance(std::size_t tenant);
  void finish(std::size_t tenant, bool is_done);
  void resume(std::size_t tenant);
  void resumed(HostedTenant& hosted, const std::vector<wire::TenantView>& views);
  void send_limit(std::size_t tenant);
  void call_etcd(std::size_t tenant, etcd::Transaction call);
  void plant_in(std::size_t tenant, etcd::Transaction& write) const;
  void remove(std::size_t tenant);
  void answer(HostedTenant& hosted, std::optional<TextEnd> refused);
  std::uint64_t broker_incarnation(const PartOwner& owner) const;
  TimePoint now() const { return network_.clock_of(machine_); }
  /// Runs `action` only in this life of the process.
  template <class Action>
  auto in_this_life(Action action) {
    return [this, life = life_, action = std::move(action)](auto&&... arguments) {
      if (life == life_) action(arguments...);
    };
  }

  Network& network_;
  const Terms& terms_;
  Machine& machine_;
  BrokerProcess& broker_;
  std::uint64_t life_ = 0;

  std::optional<Membership> membership_;
  std::optional<SavedMembership> file_;
  std::optional<Incarnation> first_;  // incarnation, for a planted bug
  bool is_beating_ = false;

  std::optional<PartOwner> owner_;  // as the parts know it
  bool is_attached_ = false;
  std::uint64_t connection_ = 0;
  Channel to_broker_;
  Channel from_broker_;
  std::map<std::uint64_t, OnAnswer> pending_;  // calls on this connection
  std::uint64_t calls_ = 0;
  bool has_taken_ceiling_ = false;
  std::optional<TimePoint> unanswered_since_;

  std::vector<std::unique_ptr<HostedTenant>> tenants_;
  std::uint64_t timers_ = 0;  // of all tenants, also of those that were forgotten
  std::set<TenantId> mailed_;
  MailWatch watch_;
};

}  // namespace leasehold::cell::simulation
