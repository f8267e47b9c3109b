/// Reads the audit chain from a broker: checks it, exports it, lists its newest records. The hash
/// chain is checked in this program; the broker is not trusted.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "ipc/control/tokens/audit_chain.hpp"
#include "tools/brokerctl/run.hpp"
#include "tools/cli/table.hpp"
#include "tools/cli/utc_time.hpp"

namespace leasehold::brokerctl {

using cli::parse_utc_ms;

/// Exit code of `audit verify` for a chain without findings whose head was missing.
inline constexpr int kExitHeadMissing = 4;

/// What the broker reports about the chain besides its records.
struct AuditState {
  std::uint64_t head_missing_after = 0;  ///< See wire::AuditPage.
  std::int64_t clock_ahead_ms = 0;       ///< See wire::AuditPage.
};

struct AuditVerdict {
  std::uint64_t first = 0;  ///< Sequence number of the oldest record; 0 without records.
  audit::Link last;
  std::uint64_t records = 0;
  std::uint64_t findings = 0;
  std::uint64_t gaps = 0;              ///< Records of times when the disk was full.
  std::vector<audit::Finding> listed;  ///< The first findings.
  AuditState state;
};

/// Calls `take` with each page, oldest first, until there are no more records; with at least one
/// page. Errors: also those of `take`.
Result<void> for_each_audit_page(std::uint64_t after, const Dependencies& dependencies,
                                 const std::function<Result<void>(const wire::AuditPage&)>& take);

/// Errors of each function: those of the call; BadRequest from a broker without --state-dir;
/// MalformedMessage.
Result<AuditVerdict> verify_audit(const Dependencies& dependencies);

/// Writes one object for each record: its content, and `hash`.
Result<void> export_audit(const ExportAudit& request, const Dependencies& dependencies);

/// The usage of one tenant with one key, or without a key.
struct UsageSum {
  std::uint64_t requests = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t generated_tokens = 0;
};
/// Keyed by tenant and key; an empty key: requests without one.
using UsageSums = std::map<std::pair<std::string, std::string>, UsageSum>;
/// Adds up the usage records that fit the request.
Result<UsageSums> sum_usage(const ShowUsage& request, const Dependencies& dependencies);
wire::Json usage_json(const UsageSums& sums);
cli::Table usage_table(const UsageSums& sums);

/// Returns the newest records, oldest first. Sets `state` unless it is null.
Result<std::vector<wire::Json>> newest_audit_records(std::uint64_t limit,
                                                     const Dependencies& dependencies,
                                                     AuditState* state = nullptr);

wire::Json audit_json(const AuditVerdict& verdict);
cli::Table audit_table(const AuditVerdict& verdict);
/// Notes about the state for people, one line each.
std::string audit_notes(const AuditState& state);
/// The same notes, and a note on what a verdict without findings does not prove.
std::string audit_notes(const AuditVerdict& verdict);
/// 0 for a sound chain, 1 with findings, or kExitHeadMissing.
int audit_exit_code(const AuditVerdict& verdict);
cli::Table audit_table(const std::vector<wire::Json>& records);

}  // namespace leasehold::brokerctl
