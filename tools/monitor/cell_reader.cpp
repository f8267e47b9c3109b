#include "tools/monitor/cell_reader.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/metrics/exposition.hpp"
#include "ipc/etcd/wait_for.hpp"

namespace leasehold::monitor {
namespace {

constexpr std::chrono::milliseconds kEtcdTimeout{500};
/// Reads of large cells take at most about a tenth of the time of etcd and of this monitor.
constexpr int kRest = 9;

etcd::ClientOptions with_short_timeout(etcd::ClientOptions options) {
  options.call_timeout = kEtcdTimeout;
  return options;
}

}  // namespace

CellReader::CellReader(cell::CellAddress address, const Clock& clock)
    : clock_(clock),
      name_(address.cell),
      keys_(address.cell),
      etcd_(io_, with_short_timeout(std::move(address.etcd))),
      hosts_(keys_) {}

Result<CellEntries> CellReader::ask() {
  const auto list = [this](etcd::KeyRange range) {
    return etcd::wait_for(io_, etcd_.range(std::move(range)));
  };
  const auto config = TRY(list(etcd::KeyRange::one(keys_.config()))).entries;
  CellEntries entries;
  if (!config.empty())
    entries.config = TRY(cell::read_config(config.front().key, config.front().value));
  entries.hosts = TRY(list(keys_.hosts())).entries;
  entries.ledgers = TRY(list(keys_.ledgers())).entries;
  return entries;
}

/// Logs the error once for each reason, not for each attempt.
void CellReader::refresh() {
  const TimePoint begun = clock_.now();
  if (begun < due_) return;
  const auto entries = ask();
  const TimePoint now = clock_.now();
  due_ = now + (entries ? std::max(kMaxAge, (now - begun) * kRest) : kPause);
  const auto last =
      std::exchange(error_, entries ? std::nullopt : std::optional<Error>(entries.error()));
  if (entries) {
    if (last) spdlog::info("etcd answers again cell={}", name_.value);
    hosts_.listed(*entries, now);
  } else if (!last || last->code != error_->code) {
    spdlog::warn("hosts of the cell not read cell={} code={} reason=\"{}\"", name_.value,
                 name(error_->code), error_->detail);
  }
}

wire::Json CellReader::json() {
  refresh();
  wire::Json document = hosts_.to_json(clock_.now());
  document["cell"] = name_.value;
  if (error_) document["error"] = {{"code", name(error_->code)}, {"detail", error_->detail}};
  return document;
}

std::string CellReader::metrics() {
  refresh();
  metrics::Exposition page;
  page.gauge({"leasehold_monitor_etcd_up", "1 when etcd answered the monitor"}, error_ ? 0 : 1);
  return page.text() + (error_ ? std::string() : hosts_.metrics(clock_.now()));
}

}  // namespace leasehold::monitor
