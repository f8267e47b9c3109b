/// Reads counters from the page of a worker's --metrics.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::bench {

/// Fetches the page from the path of a Unix socket; blocks for at most ten seconds.
/// Errors: ConnectionLost.
Result<std::string> fetch_metrics(const std::string& socket_path);

/// The value of a metric without labels. Errors: BadRequest if the page has no metric of that name.
Result<double> metric_of(std::string_view page, std::string_view name);

}  // namespace leasehold::bench
