#include "ipc/http/name_lookup.hpp"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>

namespace leasehold::http {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong = std::chrono::minutes(1);

const boost::asio::ip::tcp::endpoint kFound{boost::asio::ip::make_address("192.0.2.7"), 80};

Result<Endpoints> run(NameLookup& names, const std::string& url, milliseconds timeout) {
  const Url parsed = Url::parse(url).value();
  boost::asio::io_context io;
  std::optional<Result<Endpoints>> found;
  boost::asio::co_spawn(
      io, names.find(parsed, timeout),
      [&](const std::exception_ptr&, Result<Endpoints> result) { found = std::move(result); });
  io.run();
  return found.value();
}

/// A name server that answers once it is let go.
struct SlowServer {
  std::shared_ptr<std::latch> may_answer = std::make_shared<std::latch>(1);
  std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);

  NameLookup::Resolve resolve() const {
    return [may_answer = may_answer, asked = asked](const std::string&, const std::string&) {
      ++*asked;
      may_answer->wait();
      return Result<Endpoints>(Endpoints{kFound});
    };
  }
};

}  // namespace

TEST_CASE("name lookup: an address needs no lookup") {
  NameLookup names([](const std::string&, const std::string&) -> Result<Endpoints> {
    return fail(Errc::ConnectionRefused, "asked");
  });
  const auto ipv4 = run(names, "http://127.0.0.1:8765", kLong);
  REQUIRE(ipv4);
  CHECK(ipv4->front().address().to_string() == "127.0.0.1");
  CHECK(ipv4->front().port() == 8765);
  CHECK(run(names, "http://[::1]:80", kLong)->front().address().to_string() == "::1");
  CHECK(run(names, "http://index.local:80", kLong).error().detail == "asked");
}

TEST_CASE("name lookup: a name server that does not answer costs a timeout and one thread") {
  const SlowServer server;
  NameLookup names(server.resolve());
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto late = run(names, "http://index.local:80", milliseconds(1));
    REQUIRE_FALSE(late);
    CHECK(late.error().code == Errc::TimedOut);
  }
  server.may_answer->count_down();
  const auto found = run(names, "http://index.local:80", kLong);
  REQUIRE(found);
  CHECK(*found == Endpoints{kFound});
  CHECK(*server.asked == 1);
}

TEST_CASE("name lookup: its end does not wait for a lookup that runs") {
  const SlowServer server;
  {
    NameLookup names(server.resolve());
    CHECK(run(names, "http://index.local:80", milliseconds(1)).error().code == Errc::TimedOut);
  }
  server.may_answer->count_down();
}

TEST_CASE("name lookup: each call after an answer asks again") {
  const SlowServer server;
  server.may_answer->count_down();
  NameLookup names(server.resolve());
  for (int call = 0; call < 3; ++call) CHECK(run(names, "http://index.local:80", kLong));
  CHECK(*server.asked == 3);
}

}  // namespace leasehold::http
