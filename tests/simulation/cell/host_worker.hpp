/// The worker of a host: texts under leases of the real broker. It obeys words and deadlines in the
/// lease table at each commit, as workers do, whether the broker runs or not.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tests/simulation/cell/terms.hpp"

namespace leasehold::cell::simulation {

/// A text, or its rest, that a gateway asks a host for.
struct StartText {
  std::uint64_t attempt = 0;
  std::size_t tenant = 0;
  std::uint32_t position = 0;  ///< Of the first token.
  std::uint32_t length = 0;
  std::optional<HostName> moved_from;
};

enum class TextEnd : std::uint8_t {
  Complete,
  Refused,  ///< Another host may take it.
  Lost,     ///< The lease has ended.
  Unknown,  ///< The cell does not serve the tenant.
};

/// What a host sends of one text.
struct TextNews {
  std::uint64_t attempt = 0;
  std::vector<std::uint32_t> positions;
  std::optional<TextEnd> end;
};

class HostWorker {
 public:
  using OnResolved = std::function<void(std::optional<TextEnd>)>;
  struct Links {
    /// Asks the agent for a part of a tenant that the broker does not know.
    std::function<void(std::size_t tenant, std::optional<HostName>, OnResolved)> resolve;
    /// Notifies the agent that it could use more.
    std::function<void(std::size_t tenant, std::optional<HostName>)> want;
    std::function<void(std::vector<TextNews>)> send_news;
    std::function<void(std::size_t tenant, const PartOwner&)> committed;
  };

  HostWorker(Network& network, const Terms& terms, Machine& machine, BrokerProcess& broker,
             Links links);

  void start();
  /// What the broker sends.
  void receive(ToWorker message);
  void broker_restarted();
  void begin(StartText text);
  /// The gateway has closed the text's connection.
  void cancel(std::uint64_t attempt);

  /// What may run of the tenant now, by the incarnation of its part.
  void add_running(std::size_t tenant, std::vector<Running>& all) const;

 private:
  enum class Stage : std::uint8_t { Resolving, Acquiring, Waiting, Running };
  struct Request {
    StartText text;
    Stage stage = Stage::Resolving;
    TimePoint since;  // of the stage
    std::uint64_t life = 0;
    LeaseId lease;
    PartOwner owner;
    TimePoint renewal;
    bool has_asked_more = false;
  };

  void step();
  void step(Request& request, std::vector<TextNews>& news);
  void commit(Request& request, TextNews& news);
  void acquire(std::uint64_t attempt);
  void acquired(std::uint64_t attempt, const Result<Answer>& answer, Incarnation incarnation);
  void end(Request& request, TextEnd end, std::vector<TextNews>& news);
  void release(const Request& request);
  void renew(Request& request);
  void ask_more(Request& request);
  void report_usage();
  void attach(std::optional<AttachmentId> resume);
  void start_again();
  void apply(const wire::TenantQuota& quota);
  void map(const wire::LeaseGrant& grant);
  bool may_commit(LeaseId lease) const;
  std::uint32_t running(std::size_t tenant) const;
  /// Runs at the broker, unless this life of it has ended by then.
  void at_broker(std::function<void()> action);
  TimePoint now() const { return network_.clock_of(machine_); }

  Network& network_;
  const Terms& terms_;
  Machine& machine_;
  BrokerProcess& broker_;
  Links links_;
  Channel from_broker_;
  Channel to_broker_;
  AttachmentId attachment_;
  std::vector<Request> requests_;
  std::map<LeaseId, std::vector<ExtentId>> mapped_;
  std::vector<wire::TenantQuota> quotas_;    // by tenant
  std::vector<wire::TenantUsage> reported_;  // by tenant
};

}  // namespace leasehold::cell::simulation
