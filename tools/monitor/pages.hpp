/// What the monitor answers over HTTP: the metrics, the page, and the data of the page.
#pragma once

#include <vector>

#include "ipc/http/page_server.hpp"
#include "tools/monitor/broker_reader.hpp"

namespace leasehold::monitor {

/// `/metrics`. `reader` outlives it.
http::Page metrics_page(BrokerReader& reader);

/// `/`, the files of the page, and its data as JSON. All are read-only, and say so to the browser:
/// nothing from elsewhere, no frame around them, nothing kept. `reader` and `clock` outlive them.
///
///   /api/overview   {"now_boottime_ns", "version", "status": StatusView, "workers": [WorkerView
///   …],
///                    "tenants": [TenantView …]}
///   /api/history    History::to_json
///   /api/leases     BrokerReader::leases; /api/extents and /api/events likewise
///
/// Without an answer of the broker a path of `/api/` is an error of http::error_answer.
std::vector<http::Page> pages_of(BrokerReader& reader, const Clock& clock);

}  // namespace leasehold::monitor
