/// The hosts of a gateway: asks each twice a second what it serves and how busy it is.
///
/// A host that leaves the list gets no new request. It is asked until its last request has ended,
/// so that texts move to other hosts or end there. A host that leaves its cell, or joins it again,
/// has stopped as what it was: all connections to it are closed. A host that has left is forgotten
/// some time later.
///
/// Lifetime: `io` and `clock` outlive it; it outlives all exchanges. Threads: one.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "tools/gateway/decide/host_identity.hpp"
#include "tools/gateway/decide/host_table.hpp"
#include "tools/gateway/host_link.hpp"
#include "tools/gateway/lasting_problems.hpp"

namespace leasehold::gateway {

class Hosts {
 public:
  static constexpr std::chrono::milliseconds kPollInterval{500};
  /// A host that does not answer for this time is frozen.
  static constexpr std::chrono::milliseconds kPollTimeout{1'500};

  /// Errors: those of HostTable::create.
  static Result<std::unique_ptr<Hosts>> create(boost::asio::io_context& io, const Clock& clock,
                                               const std::vector<HostAddress>& addresses,
                                               http::TlsClient tls);

  /// Without hosts, for those of a cell.
  static std::unique_ptr<Hosts> of_cell(boost::asio::io_context& io, const Clock& clock,
                                        http::TlsClient tls);

  /// Begins to ask.
  void start();
  /// Replaces the list, and logs what changes. Errors: those of HostTable::set_list; nothing has
  /// changed then.
  Result<void> set_list(const std::vector<HostAddress>& addresses);
  /// A door of a member of the cell.
  struct Door {
    HostAddress address;
    CellMember member;
  };
  /// Replaces the hosts of the cell, and logs what changes. Precondition: no address occurs twice.
  void set_doors(const std::vector<Door>& doors);
  /// For connections that begin from now on.
  void set_tls(http::TlsClient tls) { tls_ = std::move(tls); }
  /// Stops asking: the coroutines end by themselves.
  void stop() { is_stopping_ = true; }

  HostTable& table() { return table_; }
  const HostTable& table() const { return table_; }
  /// To a host that was forgotten no connection can be opened.
  HostLink& link(HostId host);
  /// Forgets what HostTable::forget_gone forgets.
  void forget_gone();
  /// How many are in the list.
  std::size_t size() const;
  HostState state(HostId host) const { return table_.state(host, clock_.now()); }
  std::size_t count(HostState state) const;
  /// Those in the list, and those that still serve requests.
  std::vector<HostId> all() const;
  /// How the hosts compute each model, as they reported last.
  const ServedIdentities& identities() const { return identities_; }
  /// Those that are Ready, Asleep or Draining: they answer questions about what runs there.
  std::vector<HostId> answering() const;

 private:
  Hosts(boost::asio::io_context& io, const Clock& clock, HostTable table, http::TlsClient tls);
  struct Host {
    std::shared_ptr<HostLink> link;  // shared with the coroutine that watches
    bool is_watched = false;
  };

  void add(HostId host, const HostAddress& address);
  void begin_added(const std::vector<HostId>& added);
  void begin_watch(HostId host);
  bool is_needed(HostId host) const;
  boost::asio::awaitable<void> watch(HostId host);
  boost::asio::awaitable<Result<HostReport>> ask(HostLink& link);
  void note(HostId host, Result<HostReport> report, std::string& last);
  void compare_identities();

  boost::asio::io_context& io_;
  const Clock& clock_;
  HostTable table_;
  http::TlsClient tls_;
  HostLink forgotten_;
  std::map<HostId, Host> hosts_;
  ServedIdentities identities_;
  LastingProblems differences_{"hosts compute a model differently"};
  bool is_started_ = false;
  bool is_stopping_ = false;
};

}  // namespace leasehold::gateway
