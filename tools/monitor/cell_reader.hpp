/// Reads the hosts of a cell from etcd, at most once a second, less often where a read takes long,
/// and only while a scrape or an open page needs them.
///
/// When etcd cannot be read, the known hosts stay, with the error, and etcd is asked again after
/// kPause: a read waits up to half a second for each of its members. Threads: one.
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>

#include "ipc/etcd/client.hpp"
#include "tools/cell/config/etcd_options.hpp"
#include "tools/monitor/cell_hosts.hpp"

namespace leasehold::monitor {

class CellReader {
 public:
  static constexpr Duration kMaxAge = std::chrono::seconds(1);
  static constexpr Duration kPause = std::chrono::seconds(5);

  /// `clock` must outlive the reader.
  CellReader(cell::CellAddress address, const Clock& clock);

  /// CellHosts::to_json with "cell", and "error": {"code", "detail"} of the newest read if that
  /// failed.
  wire::Json json();
  /// CellHosts::metrics, and whether etcd answers.
  std::string metrics();

 private:
  void refresh();
  Result<CellEntries> ask();

  const Clock& clock_;
  CellName name_;
  cell::CellKeys keys_;
  boost::asio::io_context io_;
  etcd::Client etcd_;
  CellHosts hosts_;
  std::optional<Error> error_;  // of the newest read
  TimePoint due_;               // when etcd is asked again
};

}  // namespace leasehold::monitor
