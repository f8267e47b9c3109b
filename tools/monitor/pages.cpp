#include "tools/monitor/pages.hpp"

#include <nlohmann/json.hpp>

#include "common/cli/version.hpp"
#include "common/metrics/exposition.hpp"
#include "ipc/http/http_errors.hpp"
#include "tools/monitor/page_files.hpp"

namespace leasehold::monitor {
namespace {

using control::Json;

/// Allows only this server as a source, no inline scripts or styles, and no text that becomes
/// markup.
constexpr std::string_view kSecurityHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

std::string_view content_type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

http::Page file_page(const PageFile& file) {
  const std::string path = file.name == "index.html" ? "/" : "/" + std::string(file.name);
  return {.path = path, .make = [file] {
            return http::Answer{.body = std::string(file.text),
                                .content_type = std::string(content_type_of(file.name)),
                                .extra_headers = kSecurityHeaders};
          }};
}

/// Replaces invalid UTF-8 instead of throwing. A broker does not send any.
http::Answer json_answer(const Json& document) {
  return {.body = document.dump(-1, ' ', false, Json::error_handler_t::replace),
          .extra_headers = kSecurityHeaders};
}

http::Answer answer_of(const Result<Json>& document) {
  if (document) return json_answer(*document);
  http::Answer refused = http::refusal(document.error());
  refused.extra_headers = kSecurityHeaders;
  return refused;
}

Result<Json> overview(const Result<BrokerState>& state, TimePoint now) {
  if (!state) return std::unexpected(state.error());
  Json overview{{"now_boottime_ns", now.boottime_ns},
                {"version", std::string(version())},
                {"status", state->status.to_json()},
                {"workers", array_of(state->workers)},
                {"tenants", array_of(state->tenants)}};
  if (state->audit) overview["audit"] = state->audit->to_json();
  return overview;
}

}  // namespace

http::Page metrics_page(BrokerReader& reader, CellReader* cell) {
  return {.path = "/metrics", .make = [&reader, cell] {
            const std::string of_cell = cell == nullptr ? "" : cell->metrics();
            return http::Answer{.body = reader.metrics_text() + of_cell,
                                .content_type = std::string(metrics::exposition_content_type())};
          }};
}

std::vector<http::Page> pages_of(BrokerReader& reader, WorkerReader& workers, CellReader* cell,
                                 const Clock& clock) {
  std::vector<http::Page> pages;
  for (const PageFile& file : page_files()) pages.push_back(file_page(file));
  pages.push_back({.path = "/api/overview", .make = [&reader, &clock] {
                     return answer_of(overview(reader.state(), clock.now()));
                   }});
  pages.push_back({.path = "/api/history",
                   .make = [&reader] { return json_answer(reader.history().to_json()); }});
  pages.push_back(
      {.path = "/api/leases", .make = [&reader] { return answer_of(reader.leases()); }});
  pages.push_back(
      {.path = "/api/extents", .make = [&reader] { return answer_of(reader.extents()); }});
  pages.push_back(
      {.path = "/api/events", .make = [&reader] { return answer_of(reader.events()); }});
  pages.push_back(
      {.path = "/api/requests", .make = [&reader] { return answer_of(reader.requests()); }});
  pages.push_back(
      {.path = "/api/workers", .make = [&workers] { return json_answer(workers.items()); }});
  pages.push_back({.path = "/api/cell", .make = [cell] {
                     return json_answer(cell == nullptr ? Json::object() : cell->json());
                   }});
  return pages;
}

}  // namespace leasehold::monitor
