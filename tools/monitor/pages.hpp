/// What the monitor serves over HTTP: the metrics, the page, and the data of the page.
#pragma once

#include <vector>

#include "ipc/http/page_server.hpp"
#include "tools/monitor/broker_reader.hpp"
#include "tools/monitor/cell_reader.hpp"
#include "tools/monitor/worker_reader.hpp"

namespace leasehold::monitor {

/// `/metrics`, with those of the cell unless `cell` is null. The arguments outlive it.
http::Page metrics_page(BrokerReader& reader, CellReader* cell);

/// `/`, the files of the page, and its data as JSON. All are read-only. Their headers forbid the
/// browser to load content from elsewhere, to show them in a frame, and to store them. The
/// arguments outlive the pages.
///
///   /api/overview   {"now_boottime_ns", "version", "status": StatusView,
///                    "workers": [WorkerView …], "tenants": [TenantView …]}
///   /api/history    History::to_json
///   /api/leases     BrokerReader::leases; /api/extents, /api/events and /api/requests likewise
///   /api/workers    WorkerReader::items
///   /api/cell       CellReader::json; an empty object without a cell
///
/// If the broker does not answer, these paths, but /api/history, /api/workers and /api/cell, return
/// its error as http::error_answer.
std::vector<http::Page> pages_of(BrokerReader& reader, WorkerReader& workers, CellReader* cell,
                                 const Clock& clock);

}  // namespace leasehold::monitor
