/// What the gateway knows of its hosts: what each reported last, how many requests it runs, and
/// until when it refuses. Pure; time is an argument.
///
/// The list of hosts can change. A host that has left it keeps its entry and its id, because texts
/// refer to it, until it is forgotten. An id is never used again. For a host that was forgotten all
/// questions have an answer: it is Silent, without a report, and has left its cell.
///
/// The hosts of a cell have an incarnation: one membership of the host (tools/cell/decide). A host
/// that leaves the cell, or joins it again, is gone as what it was: no text goes on with it, and
/// nothing that it says counts.
///
/// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold::gateway {

/// A host of this table: its slot in the lower 32 bits, and how often the slot was used before.
using HostId = StrongId<struct HostTag>;

/// The address of a host that was forgotten, in logs and errors.
inline constexpr std::string_view kForgottenAddress = "(a host that has gone)";

/// A name under which a host serves a model.
struct ServedModel {
  std::string id;
  std::string identity;  ///< See ipc/control/tokens/text_identity.hpp. Empty: not known.
  bool operator==(const ServedModel&) const = default;
};

/// What `GET /leasehold/host` answers.
struct HostReport {
  std::string name;  ///< The host's own name.
  std::vector<ServedModel> models;
  bool ready = false;
  std::string code;         ///< Why the host is not ready: the name of an Errc, or empty.
  bool asleep = false;      ///< It has given its weights' memory to others; a new request wakes it.
  bool keeps_files = true;  ///< It serves files and batches. Earlier versions do not say so.
  bool loads_adapters = false;  ///< It may serve names that are not in `models`: adapters.
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;

  /// Errors: MalformedMessage, which names the field; MessageTooLarge above 1 MiB, 256 models or
  /// names of more than 256 bytes.
  static Result<HostReport> parse(std::string_view json);

  bool serves(std::string_view model) const;
  const ServedModel* find(std::string_view model) const;
};

/// From Late on, a later state is a better one for a new request.
enum class HostState : std::uint8_t {
  Silent,  ///< It has not reported, or not lately.
  NotReady,
  Draining,  ///< It ends its running texts soon, or has left the list; each should continue
             ///< elsewhere.
  Late,      ///< It was ready and should have reported again. It may be frozen.
  Asleep,    ///< Its running texts wait; each should continue elsewhere. A new request wakes it.
  Ready,
};

std::string_view name(HostState state);

/// One membership of a host in its cell, by the revision that created its key. Zero: none.
using Incarnation = StrongId<struct GatewayIncarnationTag>;

/// A host of a cell.
struct CellMember {
  std::string address;
  Incarnation incarnation;
  bool is_draining = false;  ///< Its texts should continue elsewhere.
  std::string host{};        ///< Its name in the cell.
  bool operator==(const CellMember&) const = default;
};

/// What a new list of hosts changes.
struct HostChanges {
  std::vector<HostId> added;  ///< Some may have been in an earlier list.
  std::vector<HostId> removed;
  std::vector<HostId> renewed;  ///< Of a cell: in the list, in another incarnation than before.
};

class HostTable {
 public:
  /// How long a host that has left the list is remembered after its last request.
  static constexpr Duration kKeepGone = std::chrono::minutes(10);
  /// Hosts beyond this number that have left are forgotten earlier.
  static constexpr std::size_t kMaxGone = 1'024;

  /// A host whose last report is older than `silent_after` is Silent, and Late from half of that.
  /// Errors: BadRequest for an empty list and for an address that occurs twice.
  static Result<HostTable> create(std::vector<std::string> addresses, Duration silent_after);
  /// An empty table for the hosts of a cell.
  static HostTable of_cell(Duration silent_after) { return HostTable(silent_after); }

  /// Replaces the list of hosts. A host that is removed gets no new request, and is Draining while
  /// it reports that it is ready. Errors: those of `create`; nothing has changed then.
  Result<HostChanges> set_list(const std::vector<std::string>& addresses);
  /// Replaces the hosts of a cell; there may be none. A host that is removed or has another
  /// incarnation is Silent until it reports again. Precondition: no address occurs twice.
  HostChanges set_members(const std::vector<CellMember>& members);

  /// Forgets hosts that left the list, run no request, and have done so for kKeepGone; beyond
  /// kMaxGone also those that have done so for longest. Returns their ids. Call it often: time
  /// counts from the first call that finds a host unused.
  std::vector<HostId> forget_gone(TimePoint now);

  /// The hosts that are known: those of the list, and those that have left it lately.
  auto ids() const {
    return hosts_ | std::views::filter(&Host::is_known) | std::views::transform(&Host::id);
  }
  /// How many are known.
  std::size_t size() const { return hosts_.size() - free_.size(); }
  bool is_listed(HostId host) const { return at(host).is_listed; }
  const std::string& address(HostId host) const { return at(host).address; }
  /// Nothing for a host of a list; zero for one that has left its cell.
  std::optional<Incarnation> incarnation(HostId host) const { return at(host).incarnation; }
  /// Null until the host has reported.
  const HostReport* report(HostId host) const;
  /// The host's name in its cell, also after it has left. Of a list: that of its report; empty
  /// without one, and for a text that is not a HostName, which other hosts would refuse.
  std::string name_of(HostId host) const;
  HostState state(HostId host, TimePoint now) const;
  /// The larger of the requests that the host reported and those that this gateway has there. The
  /// report of a Silent host does not count.
  std::uint32_t load(HostId host, TimePoint now) const;
  /// The requests that this gateway has there.
  std::uint32_t started_on(HostId host) const { return at(host).started; }
  /// The end of the time for which the host has asked not to be sent requests.
  TimePoint refuses_until(HostId host) const { return at(host).refuses_until; }

  void reported(HostId host, HostReport report, TimePoint now);
  /// The host answered a request with an error that is its own, not the tenant's, and says when to
  /// retry.
  void refused(HostId host, Duration retry_after, TimePoint now);
  /// A connection to the host failed: it is Silent until it reports.
  void unreachable(HostId host);
  /// A request was sent to the host, or ended there.
  void started(HostId host);
  void ended(HostId host);

 private:
  struct Host {
    HostId id;
    std::string address;
    std::optional<HostReport> report;
    std::optional<TimePoint> reported_at;  // nothing: Silent
    TimePoint refuses_until;
    std::uint32_t started = 0;
    bool is_known = true;  // false: a free slot, whose next host has this id
    bool is_listed = true;
    bool is_draining = false;                // as its cell says
    std::optional<Incarnation> incarnation;  // nothing: of no cell
    std::optional<TimePoint> unused_since;   // not in the list, and no request runs
    std::string name_in_cell{};
  };

  explicit HostTable(Duration silent_after) : silent_after_(silent_after) {}
  static const Host& forgotten();
  static bool enter_cell(Host& host, const CellMember& member);
  static void leave_cell(Host& host);
  Host& add(std::string address);
  void forget(HostId host);
  std::optional<std::size_t> slot_of(HostId host) const;
  Host* find(HostId host);
  const Host& at(HostId host) const;

  std::vector<Host> hosts_;          // by slot
  std::vector<std::uint32_t> free_;  // slots
  Duration silent_after_;
};

}  // namespace leasehold::gateway
