/// Everything the demo observed, its checks and its report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/checks/runner/check.hpp"
#include "tests/checks/runner/memory_check.hpp"
#include "tests/checks/runner/system.hpp"

namespace leasehold::demo {

using runner::Check;
using runner::TenantRecord;

/// Command-line settings of the demo.
struct Settings {
  std::string bin_dir;  ///< Directory of leasehold-broker, -worker, -tenant and brokerctl.
  std::string model_path;
  std::string device;        ///< The broker's --device; empty: its default.
  std::string adapters_dir;  ///< Directory of the model's adapters; empty: use none.
  std::string out_dir;       ///< Directory for the reports; empty: write none.
  bool chat = false;         ///< Send questions that use the model's chat template.
  bool plain = false;        ///< Print lines instead of columns.
  std::uint32_t max_tokens = 160;
  std::uint32_t slow_motion_us = 0;
};

/// One tenant of the scenario. B's lease is revoked, C's process is killed, A and D are
/// undisturbed.
struct TenantResult {
  runner::TenantSpec spec;
  std::string expects;       ///< A word that the answer must contain; empty: none.
  TenantRecord undisturbed;  ///< The same request, run alone before the others.
  TenantRecord observed;     ///< Run with the other tenants, during the revocation and the kill.
  TenantRecord recovered;    ///< Run with rebind while the worker is killed.
  std::string adapter = {};  ///< Of the part with adapters; empty: the base model.
  TenantRecord adapted_alone = {};  ///< Run alone under the adapter, if there is one.
  TenantRecord adapted = {};        ///< Run with the others while an adapter is revoked.
};

/// The leases of the adapter that is revoked while its tenant's text runs.
struct RevokedAdapter {
  std::string tenant;
  LeaseId first;
  std::optional<LeaseId> second;  ///< Under which it was loaded again.
};

struct CheckedExtent {
  ExtentId extent;
  LeaseId lease;
  runner::MemoryReading before;  ///< Taken while the lease was live.
  runner::MemoryReading after;   ///< Taken after the broker reported all memory free.
  bool still_held = false;       ///< The broker lists the extent as not free.
};

struct Observation : runner::Record {
  std::vector<TenantResult> results;
  std::string revoked = "B";
  std::string killed = "C";
  /// Number of tokens that includes some after the revocation and the kill.
  std::size_t enough_tokens = 64;
  std::vector<wire::LeaseView> leases;
  bool reads_memory = true;  ///< False on a GPU: its memory has no readable descriptor.
  std::vector<CheckedExtent> extents;
  std::uint64_t adopted = 0;              ///< Texts whose memory the worker's successor adopted.
  std::optional<RevokedAdapter> adapter;  ///< Empty without adapters.

  /// Precondition: a tenant has this name.
  const TenantResult& result(const std::string& name) const;
  /// Null when the broker does not list the lease.
  const wire::LeaseView* lease(LeaseId id) const;
};

/// Checks every promise of the demo, in report order. Pure.
std::vector<Check> judge(const Observation& seen);

/// The first group: tokens and texts are equal to the undisturbed run, also for the tenant that
/// rebinds, after the death of the worker and beside a revoked adapter; answers of chats contain
/// the expected words.
void judge_texts(const Observation& seen, std::vector<Check>& checks);

/// The answers of chats, the table of leases with their clocks, then one line per check. Pure.
std::string report_text(const Observation& seen, const std::vector<Check>& checks,
                        const Settings& settings);

/// {"ok", "slow_motion_us", "leases": [...], "checks": [{"promise", "ok", "seen"}]}
wire::Json report_json(const Observation& seen, const std::vector<Check>& checks,
                       const Settings& settings);

}  // namespace leasehold::demo
