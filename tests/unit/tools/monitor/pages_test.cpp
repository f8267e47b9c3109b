// What the monitor answers, and with which fields.
#include "tools/monitor/pages.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/monitor/page_files.hpp"

using namespace leasehold;
using namespace leasehold::monitor;
using control::Json;

namespace {

std::string_view text_of(std::string_view name) {
  const auto found = std::ranges::find(page_files(), name, &PageFile::name);
  REQUIRE(found != page_files().end());
  return found->text;
}

}  // namespace

TEST_CASE("pages: every page forbids what does not come from this server") {
  const ManualClock clock;
  BrokerReader reader("/nonexistent/broker.sock", clock);
  WorkerReader workers({{.unix_path = "/nonexistent/metrics.sock"}}, clock);
  std::set<std::string> paths;
  for (const http::Page& page : pages_of(reader, workers, nullptr, clock)) {
    paths.insert(page.path);
    const http::Answer answer = page.make();
    CHECK(answer.extra_headers.contains("Content-Security-Policy: default-src 'none';"));
    CHECK_FALSE(answer.extra_headers.contains("unsafe"));
    CHECK(answer.extra_headers.contains("Cache-Control: no-store\r\n"));
    CHECK_FALSE(answer.body.empty());
  }
  for (const char* path :
       {"/", "/main.js", "/style.css", "/api/overview", "/api/history", "/api/workers"})
    CHECK(paths.contains(path));
}

TEST_CASE("pages: without an answer of the broker the data is an error, and the page is not") {
  const ManualClock clock;
  BrokerReader reader("/nonexistent/broker.sock", clock);
  WorkerReader workers({{.unix_path = "/nonexistent/metrics.sock"}}, clock);
  for (const http::Page& page : pages_of(reader, workers, nullptr, clock)) {
    const http::Answer answer = page.make();
    const bool needs_broker = page.path.starts_with("/api/") && page.path != "/api/history" &&
                              page.path != "/api/workers" && page.path != "/api/cell";
    CHECK(answer.status == (needs_broker ? 503 : 200));
    if (needs_broker) CHECK(Json::parse(answer.body).at("error").at("message").is_string());
  }
}

TEST_CASE("pages: the page names no other site, and makes no markup from text") {
  for (const PageFile& file : page_files()) {
    INFO(file.name);
    std::string text(file.text);
    for (const std::string known : {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"})
      for (auto at = text.find(known); at != std::string::npos; at = text.find(known))
        text.erase(at, known.size());
    for (const char* gone : {"http:", "https:", "//cdn", "innerHTML", "outerHTML", "insertAdjacent",
                             "document.write", "eval(", "@import", "style=\"", "onclick=\""})
      CHECK_FALSE(text.contains(gone));
  }
}

TEST_CASE("pages: each file that the page names is served") {
  for (const char* name : {"icon.svg", "style.css", "main.js"})
    CHECK(text_of("index.html").contains("\"" + std::string(name) + "\""));
  for (const PageFile& file : page_files()) {
    if (!file.name.ends_with(".js")) continue;
    for (auto at = file.text.find(" from \"./"); at != std::string_view::npos;
         at = file.text.find(" from \"./", at + 1)) {
      const std::string_view rest = file.text.substr(at + 9);
      text_of(rest.substr(0, rest.find('"')));
    }
  }
}
