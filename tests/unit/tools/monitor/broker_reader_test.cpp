// How often a broker is asked, and what its answers become.
#include "tools/monitor/broker_reader.hpp"

#include <catch2/catch.hpp>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "ipc/control/messages/requests.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using namespace leasehold::monitor;
using namespace std::chrono_literals;
using control::Json;

namespace {

/// A broker with known answers, on a thread of its own.
class ScriptedBroker {
 public:
  ScriptedBroker() {
    acceptor_.emplace(control::listen_on(io_, socket(), 0600).value());
    accept();
    thread_ = std::jthread([this] { io_.run(); });
  }
  ~ScriptedBroker() {
    io_.stop();
    thread_.join();
  }
  ScriptedBroker(const ScriptedBroker&) = delete;
  ScriptedBroker& operator=(const ScriptedBroker&) = delete;

  std::string socket() const { return directory_.file("socket"); }
  void set_tokens(const std::string& tenant, std::uint64_t tokens) {
    const std::scoped_lock lock(mutex_);
    tokens_[tenant] = tokens;
  }
  void set_events(std::uint64_t newest) {
    const std::scoped_lock lock(mutex_);
    newest_ = newest;
  }
  void set_leases(std::uint64_t count) {
    const std::scoped_lock lock(mutex_);
    leases_ = count;
  }
  /// Ready workers; one whose name is "silent" does not answer for its requests.
  void set_workers(std::vector<std::string> names) {
    const std::scoped_lock lock(mutex_);
    workers_ = std::move(names);
  }
  /// Methods that were called since the last time.
  std::vector<std::string> take_calls() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(calls_, {});
  }

 private:
  void accept() {
    acceptor_->async_accept([this](boost::system::error_code error, control::Socket socket) {
      if (error) return;
      const auto on_call = [this](const std::string& method, control::Payload params,
                                  control::Responder respond) {
        if (params.body.value("worker", "") == "silent")
          return respond(fail(Errc::TimedOut, "the worker does not reply"));
        respond(control::Payload{.body = answer(method, params.body)});
      };
      auto handlers = control::Peer::Handlers{.on_call = on_call,
                                              .on_notification = [](const auto&, auto) {},
                                              .on_closed = [](const auto&) {}};
      peers_.push_back(control::Peer::create(std::move(socket), std::move(handlers)));
      peers_.back()->start();
      accept();
    });
  }

  /// A page of events has at most three.
  Json events_after(std::uint64_t after) const {
    Json items = Json::array();
    for (std::uint64_t i = after + 1; i <= newest_ && items.size() < 3; ++i)
      items.push_back({{"event", "lease_state"}, {"sequence", i}});
    return items;
  }

  Json answer(const std::string& method, const Json& params) {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(method);
    if (method == "status") {
      wire::StatusView view;
      view.isolation = "no-worker";
      return view.to_json();
    }
    if (method == "metrics.read")
      return {{"adapters", {{"loads", 0}, {"evictions", 0}, {"refusals", Json::object()}}},
              {"first_power", 10},
              {"revocations", Json::object()},
              {"clocks", Json::object()},
              {"rebinds", Json::object()}};
    if (method == "event.list")
      return {{"items", params.at("limit") == 0 ? Json::array() : events_after(params.at("after"))},
              {"newest", newest_}};
    Json items = Json::array();
    if (method == "tenant.list") {
      for (const auto& [name, tokens] : tokens_) {
        wire::TenantView view;
        view.policy.tenant = view.served.tenant = {name};
        view.served.tokens = tokens;
        items.push_back(view.to_json());
      }
    }
    if (method == "worker.list")
      for (const std::string& name : workers_)
        items.push_back(wire::WorkerView{.worker = name, .state = "ready"}.to_json());
    if (method == "request.list") {
      const wire::RequestView view{.id = "ann/" + params.at("worker").get<std::string>(),
                                   .state = wire::RequestState::Decode};
      return wire::RequestPage{.items = {view}, .more = params.at("worker") == "w2"}.to_json();
    }
    if (method == "lease.list") {
      const std::uint64_t first = params.contains("after") ? params.at("after").get<int>() + 1 : 0;
      for (std::uint64_t slot = first; slot < leases_ && items.size() < 1000; ++slot) {
        wire::LeaseView view;
        view.lease = {static_cast<std::uint32_t>(slot), 1};
        items.push_back(view.to_json());
      }
      const bool more = first + items.size() < leases_;
      return {{"items", std::move(items)}, {"more", more}, {"total", leases_}};
    }
    return {{"items", std::move(items)}, {"more", false}};
  }

  TemporaryDirectory directory_ = TemporaryDirectory::create("broker").value();
  boost::asio::io_context io_;
  std::optional<boost::asio::local::stream_protocol::acceptor> acceptor_;
  std::vector<std::shared_ptr<control::Peer>> peers_;
  std::mutex mutex_;
  std::vector<std::string> calls_;
  std::map<std::string, std::uint64_t> tokens_;
  std::uint64_t newest_ = 0;
  std::uint64_t leases_ = 0;
  std::vector<std::string> workers_;
  std::jthread thread_;
};

const std::vector<std::string> kOfState{"status", "metrics.read", "worker.list", "tenant.list"};

}  // namespace

TEST_CASE("broker reader: it asks when it is asked, and at most once a second") {
  ScriptedBroker broker;
  ManualClock clock;
  BrokerReader reader(broker.socket(), clock);
  clock.advance(1h);
  CHECK(broker.take_calls().empty());
  REQUIRE(reader.state().has_value());
  CHECK(broker.take_calls() == kOfState);
  clock.advance(999ms);
  CHECK(reader.metrics_text().contains("leasehold_broker_up 1\n"));
  CHECK(reader.state().has_value());
  CHECK(broker.take_calls().empty());
  clock.advance(1ms);
  CHECK(reader.state().has_value());
  CHECK(broker.take_calls() == kOfState);
  REQUIRE(reader.leases().has_value());
  REQUIRE(reader.leases().has_value());
  CHECK(broker.take_calls() == std::vector<std::string>{"lease.list"});
  CHECK(reader.history().to_json()["at_boottime_ns"].size() == 2);
}

TEST_CASE("broker reader: tokens of a broker that started again add to those before") {
  ScriptedBroker broker;
  ManualClock clock;
  BrokerReader reader(broker.socket(), clock);
  for (const std::uint64_t tokens : {100, 130, 20}) {
    broker.set_tokens("ann", tokens);
    REQUIRE(reader.state().has_value());
    clock.advance(1s);
  }
  const auto& served = reader.state()->served;
  REQUIRE(served.size() == 1);
  CHECK(served.front().tokens == 150);
}

TEST_CASE("broker reader: a thousand tenants have 32 names and one for the rest") {
  ScriptedBroker broker;
  ManualClock clock;
  for (int i = 0; i < 1000; ++i) broker.set_tokens("t" + std::to_string(i), 10);
  BrokerReader reader(broker.socket(), clock);
  REQUIRE(reader.state().has_value());
  CHECK(reader.state()->served.size() == TenantCounts::kNamedTenants + 1);
  std::uint64_t sum = 0;
  for (const auto& each : reader.state()->served) sum += each.tokens;
  CHECK(sum == 10'000);
}

TEST_CASE("broker reader: the newest events are read, although a page of the broker ends before") {
  ScriptedBroker broker;
  ManualClock clock;
  BrokerReader reader(broker.socket(), clock);
  CHECK(reader.events()->at("items").empty());
  broker.set_events(BrokerReader::kMaxEvents + 7);
  clock.advance(1s);
  const auto& events = reader.events();
  REQUIRE(events.has_value());
  CHECK(events->at("items").size() == BrokerReader::kMaxEvents);
  CHECK(events->at("items").front().at("sequence") == 8);
  CHECK(events->at("items").back().at("sequence") == BrokerReader::kMaxEvents + 7);
}

TEST_CASE("broker reader: the requests of the workers, and which do not answer for theirs") {
  ScriptedBroker broker;
  ManualClock clock;
  BrokerReader reader(broker.socket(), clock);
  broker.set_workers({"w1", "silent"});
  const Json one = reader.requests().value();
  REQUIRE(one.at("items").size() == 1);
  CHECK(one.at("items")[0].at("id") == "ann/w1");
  CHECK(one.at("items")[0].at("worker") == "w1");
  CHECK(one.at("more") == false);
  CHECK(one.at("unreachable") ==
        Json::array({{{"worker", "silent"}, {"detail", "the worker does not reply"}}}));
  broker.set_workers({"w1", "w2"});
  clock.advance(1s);
  const Json two = reader.requests().value();
  CHECK(two.at("items").size() == 2);
  CHECK(two.at("more") == true);
  CHECK(two.at("unreachable").empty());
}

TEST_CASE("broker reader: a list that is cut says how many there are in all") {
  ScriptedBroker broker;
  ManualClock clock;
  BrokerReader reader(broker.socket(), clock);
  for (const std::uint64_t leases : {0, 3, 4000, 4700}) {
    broker.set_leases(leases);
    REQUIRE(reader.leases().has_value());
    CHECK(reader.leases()->at("items").size() ==
          std::min<std::uint64_t>(leases, BrokerReader::kEnoughItems));
    CHECK(reader.leases()->at("total") == leases);
    clock.advance(1s);
  }
  CHECK(reader.extents()->at("total") == 0);  // as of a broker that names no total
}

TEST_CASE("broker reader: a broker that does not answer is down, and asked again after a second") {
  ManualClock clock;
  const auto directory = TemporaryDirectory::create("broker").value();
  BrokerReader reader(directory.file("socket"), clock);
  CHECK(reader.metrics_text().contains("\nleasehold_broker_up 0\n"));
  CHECK(reader.state().error().code == Errc::FileNotFound);
  CHECK(reader.leases().error().code == Errc::FileNotFound);
  clock.advance(2s);
  CHECK(reader.metrics_text().contains("\nleasehold_broker_up 0\n"));
  CHECK(reader.history().to_json()["at_boottime_ns"].empty());
}
