// Weights whose engine leases are revoked while they are loaded, against a broker of the test.
#include "worker/lease/weights_source.hpp"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>
#include <thread>

#include "common/temporary_directory.hpp"
#include "ipc/region/memory_object.hpp"
#include "ipc/table/lease_table.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/leased_memory.hpp"
#include "tests/support/required.hpp"

namespace leasehold::weights_source_test {
namespace {

using testing::required;
using testing::TemporaryFile;

constexpr LeaseId kRevoked{1, 1};
constexpr LeaseId kFresh{2, 1};

/// Refuses each weights.open with LeaseRevoked, and after `revocations` of them with BadRequest, or
/// answers with a region that another worker has filled.
struct Loading {
  explicit Loading(std::uint32_t revocations)
      : left(revocations),
        broker(control::Peer::create(
            acceptor.accept(),
            {.on_call = [this](const std::string& method, const control::Payload&,
                               control::Responder respond) { respond(answer(method)); },
             .on_notification = nullptr,
             .on_closed = [](const Error&) {}})) {
    broker->start();
    io_thread = std::thread([this] { io.run(); });
  }
  ~Loading() {
    io.stop();
    io_thread.join();
  }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

  Result<control::Payload> answer(const std::string& method) {
    if (method != wire::WeightsOpen::kMethod) return fail(Errc::UnknownMethod, method);
    ++opened;
    if (published) {
      control::Payload reply{
          .body = wire::WeightsOpened{.region = {7}, .lease = kFresh, .published = true}.to_json()};
      reply.fds.push_back(required(published->duplicate()));
      return reply;
    }
    if (left == 0) return fail(Errc::BadRequest, "no more");
    --left;
    return fail(Errc::LeaseRevoked, "lease 1.1 was revoked (operator)");
  }
  Error load() {
    WeightsSource source(
        file, config, plan,
        {.broker = link.get(), .progress = {}, .retry_interval = Duration::zero()});
    auto weights = source.acquire();
    REQUIRE_FALSE(weights);
    return weights.error();
  }

  TemporaryFile model{testing::tiny_llama().bytes()};
  GgufFile file = GgufFile::open(model.path()).value();
  ModelConfig config = read_config(file).value();
  WeightsPlan plan =
      make_weights_plan(make_weights_layout(file, config).value(), WeightsScope::Layer);
  std::uint32_t left;
  std::optional<UniqueFd> published;
  std::atomic<std::uint32_t> opened = 0;
  TemporaryDirectory folder = TemporaryDirectory::create("weights").value();
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work =
      boost::asio::make_work_guard(io);
  boost::asio::local::stream_protocol::acceptor acceptor =
      control::listen_on(io, folder.file("s"), 0600).value();
  std::unique_ptr<BrokerLink> link =
      BrokerLink::connect(io, folder.file("s"),
                          {.on_call = {}, .on_disconnected = [](const Error&) {}})
          .value();
  std::shared_ptr<control::Peer> broker;
  std::thread io_thread;
};

/// Counts what is mapped at the same time.
class CountingMapper final : public RegionMapper {
 public:
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override {
    auto memory =
        std::make_shared<LeasedMapping>(TRY(host_mapper().map(std::move(fd), size_bytes, access)));
    const std::span<std::byte> range(const_cast<std::byte*>(testing::address_of(memory->base())),
                                     size_bytes);
    most = std::max(most, ++*mapped);
    std::shared_ptr<const void> owner(memory.get(),
                                      [memory, mapped = mapped](const void*) { --*mapped; });
    return LeasedMapping(std::move(owner), range, access);
  }
  std::shared_ptr<int> mapped = std::make_shared<int>(0);
  mutable int most = 0;
};

}  // namespace

TEST_CASE("weights source: a part that is restored is mapped once at any time") {
  Loading loading(0);
  const WeightsPlan plan = make_weights_plan(
      make_weights_layout(loading.file, loading.config).value(), WeightsScope::Model);
  const std::uint64_t size_bytes = plan.size_bytes();
  const MemoryObject memory =
      required(MemoryObject::create({.name = "weights", .size_bytes = size_bytes}));
  LeaseTable table = required(LeaseTable::create(8));
  const TableReader reader = required(TableReader::attach(required(table.reader_fd())));
  table.grant(kRevoked, TimePoint{});
  table.grant(kFresh, TimePoint{});
  const CountingMapper regions;
  std::vector<Weights::MappedPart> parts;
  parts.push_back({.mapping = required(regions.map(required(memory.fd().duplicate()), size_bytes,
                                                   MapAccess::ReadOnly)),
                   .lease = required(reader.dependency(kRevoked))});
  Weights weights = required(Weights::bind(plan, loading.config, std::move(parts)));
  table.restore(kRevoked, LeaseState::Revoked, RevokeReason::Operator);
  loading.published = required(memory.fd().duplicate());
  WeightsSource source(
      loading.file, loading.config, plan,
      {.broker = loading.link.get(), .table = &reader, .progress = {}, .regions = &regions});

  REQUIRE(required(source.restore(weights)));

  CHECK(id_of(weights.leases().front()) == kFresh);
  CHECK(*regions.mapped == 1);
  CHECK(regions.most == 1);
}

TEST_CASE("weights source: a part whose lease is revoked each time ends the load after 8 reloads") {
  Loading loading(100);

  const Error error = loading.load();

  CHECK(error.code == Errc::LeaseRevoked);
  CHECK(error.scope == FailureScope::Engine);
  CHECK(error.detail.contains("part token_embd"));
  CHECK(error.detail.contains("lease 1.1 was revoked (operator)"));
  CHECK(error.detail.contains("start the worker again"));
  CHECK(loading.opened == 1 + WeightsSource::kMaxReloads);
}

TEST_CASE("weights source: after 8 reloads the next answer of the broker still counts") {
  Loading loading(WeightsSource::kMaxReloads);

  CHECK(loading.load().code == Errc::BadRequest);

  CHECK(loading.opened == 1 + WeightsSource::kMaxReloads);
}

}  // namespace leasehold::weights_source_test
