/// The broker's whole truth, and the paper a decision is written on.
///
/// Nothing here knows sockets, descriptors or clocks. Threads: one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "broker/effect.hpp"
#include "broker/extents.hpp"
#include "broker/lease_book.hpp"
#include "broker/request_book.hpp"
#include "broker/tenants.hpp"
#include "broker/weights.hpp"
#include "broker/workers.hpp"

namespace leasehold {

struct BrokerConfig {
  std::uint32_t slot_count = 4096;
  std::uint64_t capacity_bytes = 256ull << 20;
  std::uint32_t max_extents = kDefaultMaxExtents;
  std::uint64_t weights_capacity_bytes = 1ull << 30;
  std::uint32_t max_engine_leases = 1024;    ///< Of one worker, until their memory is back.
  std::uint32_t max_weights_regions = 4096;  ///< Each costs a descriptor and a page at least.
  Duration fence_patience = std::chrono::seconds(2);
  Duration worker_patience{};  ///< With a worker that does not answer. Zero: without end.
  TokenKey token_key{};
  std::string device = "cpu";  ///< Whose memory is lent: "cpu", or "cuda:0" and so on.
  std::string device_uuid;     ///< Of the card; empty for the machine's own memory.

  /// Memory that a worker's own word cannot free for others, and whose launches outlast its line.
  bool lends_device() const { return device != "cpu"; }
};

struct State {
  explicit State(const BrokerConfig& configuration)
      : config(configuration),
        leases(configuration.slot_count),
        extents(configuration.capacity_bytes, configuration.max_extents),
        weights(configuration.weights_capacity_bytes, configuration.max_weights_regions) {}

  BrokerConfig config;
  Tenants tenants;
  Workers workers;
  LeaseBook leases;
  ExtentPool extents;
  WeightsStore weights;
  RequestBook requests;
  journal::Reserved reserved;       ///< Numbers that may be used without asking the journal.
  std::uint64_t leases_fenced = 0;  ///< Ever.
  std::uint64_t tampered = 0;       ///< Lines of the lease table found changed by others, ever.
  std::uint64_t decisions = 0;      ///< Ever.
  bool stopping = false;
  bool device_lost = false;         ///< Its agent is gone: nothing can be allocated.
  std::uint32_t device_losses = 0;  ///< Ever.
};

/// What a decision changed and the journal must hear of; how it stands in the end is looked up when
/// the decision is complete.
struct Touched {
  std::vector<LeaseId> leases;
  std::vector<ExtentId> extents;
  std::vector<AttachmentId> workers;
  std::vector<RegionId> regions;
  std::vector<TenantId> tenants;
  bool shape = false;
  std::vector<journal::AuditRow> audit;
  bool durable = false;  ///< An operator spoke.
};

/// One decision in the making: the state it changes and the effects it asks for.
class Decision {
 public:
  Decision(State& the_state, TimePoint the_now) : state(the_state), now(the_now) {}

  State& state;
  const TimePoint now;

  Touched touched;

  void touch(LeaseId lease) { touched.leases.push_back(lease); }
  void touch(ExtentId extent) { touched.extents.push_back(extent); }
  void touch(AttachmentId worker) { touched.workers.push_back(worker); }
  void touch(RegionId region) { touched.regions.push_back(region); }

  void add(Effect effect) { effects_.push_back(std::move(effect)); }
  void record(events::Event event) { add(effect::AppendEvent{std::move(event), now}); }
  void warn(std::string line) { add(effect::Warn{std::move(line)}); }

  /// Answers the call and everybody who repeated it meanwhile.
  void reply(CallId call, const Result<Answer>& answer) {
    for (const CallId waiting : state.requests.finish(call, answer)) {
      add(effect::Reply{waiting, answer});
    }
  }

  /// What an operator did or tried, for good. The time is filled in.
  void audit(journal::AuditRow row) {
    row.at_boottime_ns = now.boottime_ns;
    touched.audit.push_back(std::move(row));
  }

  std::vector<Effect>& effects() { return effects_; }
  std::vector<Effect> take_effects() { return std::move(effects_); }

 private:
  std::vector<Effect> effects_;
};

}  // namespace leasehold
