#include "broker/server/broker_loop.hpp"

#include <catch2/catch.hpp>

#include "broker/journal/sqlite_journal.hpp"
#include "broker/server/effects.hpp"
#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;

namespace {

/// A loop with a journal, without workers and connections.
class Loop {
 public:
  boost::asio::io_context io;
  BrokerLoop& loop() { return loop_; }

  void admit(const std::string& tenant) {
    loop_.post(Call<wire::TenantAdmit>{
        {.call = {++calls_}, .connection = {1}, .is_operator = true, .request_id = {tenant}},
        {.tenant = {tenant}, .max_blocks = 8}});
  }
  std::vector<std::string> tenants_on_disk() {
    std::vector<std::string> names;
    const journal::Image image = journal_->load(0).value();
    for (const auto& [id, row] : image.tenants) names.push_back(id.value);
    return names;
  }

 private:
  const journal::StateDir dir_;
  std::unique_ptr<journal::SqliteJournal> journal_ =
      journal::SqliteJournal::open(dir_.path()).value();
  State state_{{.slot_count = 4}};
  ManualClock clock_;
  LeaseTable table_ = LeaseTable::create(4).value();
  MemoryStore store_;
  HostMemory host_{io, store_};
  SpillSpace spill_{io, {}};
  WorkerLinks links_{io, {}};
  QuietWatches quiet_{io, clock_, [](Event) {}};
  Replies replies_{table_, host_, links_, LeaseWaits(io, state_, clock_, [] {})};
  EventLog log_;
  FdKeeper keeper_;
  std::uint64_t calls_ = 0;
  ServerEffects effects_{{.io = io,
                          .table = table_,
                          .memory = host_,
                          .host = host_,
                          .spill = spill_,
                          .links = links_,
                          .quiet = quiet_,
                          .replies = replies_,
                          .log = log_,
                          .journal = *journal_,
                          .fd_store = keeper_,
                          .call_timeout = {},
                          .find_peer = [](ConnectionId) { return nullptr; }},
                         [this](Event event) { loop_.post(std::move(event)); }};
  BrokerLoop loop_{io, state_, clock_, effects_};
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("broker loop: rows are written at the end of the turn") {
  Loop world;
  world.admit("a");
  world.admit("b");
  CHECK(world.tenants_on_disk().empty());
  world.io.poll();
  CHECK(world.tenants_on_disk() == Names{"a", "b"});
}

TEST_CASE("broker loop: a flush also writes the rows of what follows from it") {
  Loop world;
  bool first = true;
  world.loop().on_idle = [&] {
    if (std::exchange(first, false)) world.admit("b");
  };
  world.admit("a");
  world.loop().flush();
  CHECK(world.tenants_on_disk() == Names{"a", "b"});
}
