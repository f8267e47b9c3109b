#include "tests/checks/bench/metrics_page.hpp"

#include <fmt/format.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <charconv>
#include <chrono>
#include <sstream>

namespace leasehold::bench {
namespace {

constexpr auto kPageTimeout = std::chrono::seconds(10);

}  // namespace

Result<std::string> fetch_metrics(const std::string& socket_path) {
  boost::asio::local::stream_protocol::iostream stream;
  stream.expires_after(kPageTimeout);
  stream.connect(boost::asio::local::stream_protocol::endpoint(socket_path));
  stream << "GET /metrics HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n" << std::flush;
  std::ostringstream page;
  page << stream.rdbuf();
  if (page.view().starts_with("HTTP/1.1 200")) return std::move(page).str();
  return fail(Errc::ConnectionLost, fmt::format("{} gives no metrics: {}", socket_path,
                                                page.view().substr(0, page.view().find('\r'))));
}

Result<double> metric_of(std::string_view page, std::string_view name) {
  const std::string before = fmt::format("\n{} ", name);
  const std::size_t at = page.find(before);
  double value = 0;
  if (at != std::string_view::npos) {
    const char* begin = page.data() + at + before.size();
    if (std::from_chars(begin, page.data() + page.size(), value).ec == std::errc{}) return value;
  }
  return fail(Errc::BadRequest, fmt::format("the metrics page has no value of {}", name));
}

}  // namespace leasehold::bench
