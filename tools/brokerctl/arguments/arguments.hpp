/// Parses the command line of brokerctl into one typed verb. Wrong usage is reported without a call
/// to the broker.
///
/// Grammar: `brokerctl NOUN [VERB]` for commands on one kind of object, where a noun alone lists;
/// `brokerctl get NOUN [NAME…]` lists as well; `brokerctl VERB` for commands on leases or on the
/// whole broker.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/cli/command_line.hpp"
#include "common/clock.hpp"
#include "ipc/control/messages.hpp"
#include "tools/cell/admin/calls.hpp"

namespace leasehold::brokerctl {

/// Queries without options.
enum class Show { Status, Tenants, Extents, Workers, Quarantine, Prefixes, Adapters };
struct ListLeases {
  std::optional<TenantId> tenant;
  std::optional<LeaseState> state;
};
/// `keys`
struct ListKeys {
  std::optional<TenantId> tenant{};
};
/// `requests`
struct ListRequests {
  std::optional<TenantId> tenant{};
  std::string worker{};             ///< Empty: all workers.
  std::optional<std::string> id{};  ///< See wire::RequestList; set by `requests cancel`.
};
/// `requests cancel`: what `ids` name, or every request of the tenant.
struct CancelRequests {
  std::vector<std::string> ids{};
  bool all = false;
  std::optional<TenantId> tenant{};  ///< Set if `all` is.
  std::string worker{};              ///< See ListRequests.
};
struct ListOperatorActions {
  std::uint64_t limit = 100;  ///< 1 … 1000, newest first.
};
/// `events`; with `follow` set, `watch`.
struct ListEvents {
  std::optional<std::uint64_t> after = 0;  ///< Sequence number; none: start with the next event.
  std::uint64_t limit = 0;                 ///< 0: no limit.
  bool follow = false;
  std::optional<LeaseId> lease{};    ///< Only events that name this lease.
  std::optional<TenantId> tenant{};  ///< Only events that name this tenant.
};
/// `watch --steps`.
struct WatchSteps {
  wire::StepWatch message;
  std::uint64_t limit = 0;  ///< 0: no limit.
};
struct ShowTimeline {
  LeaseId lease;
};
/// `describe NOUN NAME`.
struct Describe {
  std::string noun;  ///< "lease", "tenant", "worker", "key" or "extent".
  std::string name;
};
struct Revoke {
  wire::LeaseRevoke message;
  bool wait = false;  ///< Wait until fenced, then print the four clocks.
  std::int64_t timeout_ms = 30'000;
};

struct Drain {
  wire::LeaseDrain message;
  bool wait = false;                 ///< Wait until every lease has ended.
  std::int64_t timeout_ms = 30'000;  ///< Longest wait from a revocation to the fence.
};

/// Waits until the old worker has no lease of a tenant.
struct ReplaceWorker {
  wire::WorkerReplace message;
  std::int64_t timeout_ms = 30'000;
};

/// `worker sleep` and `worker wake`.
struct SleepWorker {
  wire::WorkerSleep message;
  bool wait = false;  ///< Wait until the memory of the weights is free, then print the clocks.
  std::int64_t timeout_ms = 30'000;
};
struct WakeWorker {
  wire::WorkerWake message;
  bool wait = false;  ///< Wait until the worker has its weights.
  std::int64_t timeout_ms = 60'000;
};

/// `workers --wait ready`: waits for the workers that Arguments::named names, then lists them.
struct WaitWorkers {
  std::int64_t timeout_ms = 60'000;
};

struct PublishPrefix {
  std::string file;             ///< "-": standard input.
  wire::PrefixPublish message;  ///< Complete except for the text.
};

/// `keys create`. brokerctl makes the key, prints it once, and sends its hash.
struct CreateKey {
  wire::KeyCreate message;                      ///< Complete except for the hash.
  std::string key_file = {};                    ///< Has the key; "-": stdin does; empty: a new key.
  std::optional<std::int64_t> expires_in_ms{};  ///< From the call on.
};
/// `keys update`.
struct UpdateKey {
  wire::KeyUpdate message;
  std::optional<std::int64_t> expires_in_ms{};  ///< From the call on.
};

/// `audit`: the newest records of the audit chain.
struct ListAudit {
  std::uint64_t limit = 100;  ///< 1 … 1000.
};
/// `audit verify`: checks the whole audit chain.
struct VerifyAudit {};
/// `audit export`: JSON lines.
struct ExportAudit {
  std::int64_t since_unix_ms = 0;
  std::optional<TenantId> tenant{};  ///< Only records that name this tenant.
};

/// `audit certificate`.
struct MakeCertificate {
  std::string tenant;  ///< Empty: memory shared by all tenants.
  std::int64_t since_unix_ms = 0;
  std::string kept_head;  ///< File of a signed head; empty: none.
  std::string file;       ///< Empty: stdout.
};
/// `audit head`.
struct ShowAuditHead {
  std::string file;  ///< Empty: stdout.
};
/// `audit key` and `audit key rotate`.
struct SigningKey {
  bool rotate = false;
};

/// `usage`: sums of the usage records.
struct ShowUsage {
  std::int64_t since_unix_ms = 0;
  std::optional<TenantId> tenant{};
  std::optional<ApiKeyId> key{};
};

struct ShowTop {
  std::int64_t interval_ms = 1000;
  bool once = false;
};

/// A verb that only prints text and needs no broker.
struct PrintText {
  std::string text;
  std::string json = {};  ///< Printed with -o json; empty: print `text`.
  int exit_code = 0;
};

/// A verb that needs no broker, but reads the machine or a file.
struct MakeText {
  std::function<Result<PrintText>()> make;
};

/// `cell …`: asks etcd, and may wait for hosts.
struct AskCell {
  /// `wait` waits at most the given time; false when the user interrupts. `progress` may be empty.
  std::function<Result<cell::Answer>(const std::function<bool(Duration)>& wait,
                                     const std::function<void(const std::string&)>& progress)>
      ask;
  std::string config;        ///< File that names etcd and the cell.
  bool lists_names = false;  ///< The first column is a name.
};

using Verb =
    std::variant<PrintText, MakeText, AskCell, Show, ListLeases, ListOperatorActions, ListEvents,
                 WatchSteps, ShowTimeline, Describe, Revoke, Drain, wire::LeaseUndrain,
                 wire::TenantAdmit, wire::TenantRemove, wire::AdapterAdd, wire::AdapterRemove,
                 wire::AdapterLoad, wire::AdapterUnload, wire::QuarantineRelease, PublishPrefix,
                 ReplaceWorker, SleepWorker, WakeWorker, WaitWorkers, CreateKey, UpdateKey,
                 wire::KeyRevoke, ListAudit, VerifyAudit, ExportAudit, MakeCertificate,
                 ShowAuditHead, SigningKey, ShowUsage, ShowTop, ListRequests, CancelRequests,
                 ListKeys>;

/// Name: the first column of a list, one name per line.
enum class Output { Table, Wide, Json, Name };

/// The elements that a list is limited to.
struct Named {
  std::string noun;                ///< In the singular: "tenant".
  std::vector<std::string> names;  ///< Empty: all elements.
};

struct Arguments {
  std::optional<std::string> socket;
  Output output = Output::Table;
  std::optional<std::int64_t> watch_ms;  ///< Interval at which to repeat the list.
  Named named;
  Verb verb;
};

/// Requested help, or an error in the command line and the format in which to print it.
struct UsageWithOutput : Usage {
  Output output = Output::Table;
};

/// `arguments` excludes the program's name. A verb that changes state gets a new request id unless
/// `--request-id` gives one; verbs of `keys` always get a new one.
std::expected<Arguments, UsageWithOutput> parse_arguments(std::span<const std::string> arguments);

}  // namespace leasehold::brokerctl
