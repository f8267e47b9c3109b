// Loads of a real file into real extents, with a broker played by the test. The tests run the
// engine's loop by hand.
#include "worker/adapter/adapter_loader.hpp"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>
#include <fstream>

#include "tests/support/engine_rig.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/required.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using control::Json;
using testing::EngineRig;
using testing::required;

constexpr std::uint64_t kExtentBytes = 2u << 20;
constexpr std::uint32_t kRank = 4;

/// An adapter of q and down of the first layer.
std::string adapter_bytes(const ModelConfig& model, float alpha) {
  testing::GgufBuilder builder;
  builder.set("general.type", "adapter").set("general.architecture", model.architecture);
  builder.set("adapter.type", "lora").set("adapter.lora.alpha", alpha);
  const std::uint64_t heads = std::uint64_t{model.n_heads} * model.layers[0].head_dim;
  const auto add = [&](const std::string& weight, std::uint64_t n_in, std::uint64_t n_out) {
    builder.tensor(weight + ".lora_a", TensorType::F32, {n_in, kRank});
    builder.tensor(weight + ".lora_b", TensorType::F32, {kRank, n_out});
  };
  add("blk.0.attn_q.weight", model.n_embd, heads);
  add("blk.0.ffn_down.weight", model.layers[0].n_ff, model.n_embd);
  return builder.bytes();
}

/// A call that the loader made.
struct Call {
  std::string method;
  Json body;
  control::Peer::ReplyHandler reply;
};

class Fixture {
 public:
  explicit Fixture(GateProbe* probe = nullptr) : rig({.probe = probe}), loader_(dependencies()) {
    write(8.0F);
    loader_.set_extent_bytes(kExtentBytes);
  }
  ~Fixture() { ::close(directory_fd_); }

  void write(float alpha) {
    std::ofstream(directory_.file("law.gguf"), std::ios::binary)
        << adapter_bytes(rig.config(), alpha);
  }
  void remove() { std::filesystem::remove(directory_.file("law.gguf")); }

  void use() {
    answers.push_back(std::nullopt);
    loader_.use(TenantId{"t"}, "law", [this, i = answers.size() - 1](Result<AdapterUse> use) {
      REQUIRE_FALSE(answers[i].has_value());
      answers[i] = std::move(use);
    });
  }

  /// Runs the reader, then the commands of the engine, and the work between two steps.
  TimePoint turn(std::optional<Duration> step = {}) {
    reader_.restart();
    reader_.poll();
    EngineLoop& loop = loop_;
    loop.post([&loop](Engine&) { loop.stop(); });
    (void)loop.run();
    return loader_.work(step);
  }
  /// Turns until the loader calls the broker.
  Call next_call() {
    for (int i = 0; calls_.empty() && i < 1'000; ++i) turn();
    REQUIRE_FALSE(calls_.empty());
    Call call = std::move(calls_.front());
    calls_.pop_front();
    return call;
  }
  template <class Message>
  Call expect() {
    Call call = next_call();
    REQUIRE(call.method == Message::kMethod);
    return call;
  }
  template <class Message>
  void answer(Call call, const Message& message) {
    call.reply(control::Payload{.body = message.to_json(), .fds = {}});
    turn();
  }
  void refuse(Call call, Errc code) {
    call.reply(fail(code, "as the test wants"));
    turn();
  }

  void resolve(std::uint32_t version = 1) {
    answer(expect<wire::AdapterResolve>(), wire::AdapterResolved{.adapter = {"law"},
                                                                 .version = version,
                                                                 .file = "law.gguf",
                                                                 .tenant = TenantId{"t"},
                                                                 .digest = std::nullopt});
  }
  /// Answers `adapter.open` with a lease that has one extent.
  LeaseId open() {
    const auto call = required(wire::AdapterOpen::from_json(peek().body));
    CHECK(call.size_bytes == kExtentBytes);
    const LeaseId lease = rig.grant_adapter();
    loader_.granted(lease, "law", call.version);
    answer(expect<wire::AdapterOpen>(), wire::AdapterOpened{.lease = lease});
    return lease;
  }
  const Call& peek() {
    for (int i = 0; calls_.empty() && i < 1'000; ++i) turn();
    REQUIRE_FALSE(calls_.empty());
    return calls_.front();
  }
  void fill() { answer(expect<wire::AdapterFilled>(), wire::Empty{}); }

  AdapterUse load() {
    use();
    resolve();
    open();
    fill();
    return answer_of(answers.size() - 1);
  }

  /// Checks that the lease's extent has every matrix of the file, and that `matrices` points there.
  void check_memory(LeaseId lease, const AdapterMatrices& matrices) {
    AdapterFile file = required(AdapterFile::open(directory_fd_, "law.gguf", rig.config()));
    const Mapping memory = required(
        Mapping::map(rig.extents(lease).begin()->second.fd(), kExtentBytes, MapAccess::ReadOnly));
    const Leased<const std::byte> base = rig.engine().memory().extents(lease).front().base;
    for (const AdapterPiece& piece : required(file.layout(kExtentBytes)).pieces) {
      const AdaptedWeight& weight = file.weights()[piece.weight];
      std::vector<std::byte> expected(piece.size_bytes);
      required(file.read(piece, 0, expected));
      CHECK(
          std::ranges::equal(expected, std::span(memory.data() + piece.offset, piece.size_bytes)));
      const LowRankMatrix& matrix = matrices.of(weight.layer, weight.target);
      CHECK((piece.half == AdapterHalf::A ? matrix.a : matrix.b) ==
            base + static_cast<std::ptrdiff_t>(piece.offset));
    }
  }

  AdapterUse answer_of(std::size_t caller) {
    REQUIRE(answers[caller].has_value());
    return required(*answers[caller]);
  }
  AdapterLoader& loader() { return loader_; }

  EngineRig rig;
  std::vector<std::optional<Result<AdapterUse>>> answers;
  boost::asio::io_context connection;  ///< Of the broker's calls.

 private:
  AdapterLoader::Dependencies dependencies() {
    directory_fd_ = ::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return {.loop = &loop_,
            .answers = connection.get_executor(),
            .reader = reader_.get_executor(),
            .call =
                [this](const std::string& method, control::Payload params,
                       control::Peer::ReplyHandler on_reply, Duration) {
                  calls_.push_back({method, std::move(params.body), std::move(on_reply)});
                },
            .model = &rig.config(),
            .clock = &rig.clock(),
            .directory = {.fd = directory_fd_},
            .copy = {.memory = &rig.engine().memory(),
                     .backend = &rig.backend(),
                     .gate = &rig.engine_gate(),
                     .table = &rig.table(),
                     .observer = &rig}};
  }

  TemporaryDirectory directory_ = required(TemporaryDirectory::create("adapters"));
  int directory_fd_ = -1;
  boost::asio::io_context reader_;
  EngineLoop loop_{rig.engine(),
                   {.on_report = [](auto) {},
                    .on_growth = [](auto) {},
                    .on_drained = [](auto) {},
                    .on_weights_lost = [](Engine&) { return Result<void>{}; }}};
  std::deque<Call> calls_;
  AdapterLoader loader_;
};

}  // namespace

TEST_CASE("adapter loader: the matrices of the file are in the lease's extents") {
  Fixture f;
  const AdapterUse use = f.load();

  CHECK(use->name == "law");
  CHECK(use->version == 1);
  const LowRankMatrix& query = use->matrices->of(0, AdapterTarget::Query);
  CHECK(query.rank == kRank);
  CHECK(query.scale == 2.0F);
  f.check_memory(use->lease, *use->matrices);
  CHECK(use->matrices->of(0, AdapterTarget::Down).rank == kRank);
  CHECK(use->matrices->of(0, AdapterTarget::Key).rank == 0);
  CHECK(f.loader().leases() == std::vector{use->lease});
  CHECK(f.loader().counts().loads == 1);
}

TEST_CASE("adapter loader: a revocation ends a load within a unit, and the next lease is filled") {
  Fixture f;
  f.use();
  f.resolve();
  const LeaseId first = f.open();
  f.rig.revoke(first);
  const std::uint64_t units = f.rig.engine_gate().units_run();
  f.turn();
  CHECK(f.rig.engine_gate().units_run() == units);

  const LeaseId second = f.open();
  f.fill();

  CHECK(second != first);
  CHECK(f.answer_of(0)->lease == second);
}

TEST_CASE("adapter loader: a lease that ended before its answer arrived is replaced") {
  Fixture f;
  f.use();
  f.resolve();
  Call call = f.expect<wire::AdapterOpen>();
  const LeaseId first = f.rig.grant_adapter();
  f.loader().granted(first, "law", 1);
  f.rig.revoke(first);
  f.rig.fence(first);
  f.rig.engine().drop_lease(first);
  f.answer(std::move(call), wire::AdapterOpened{.lease = first});

  const LeaseId second = f.open();
  f.fill();

  CHECK(second != first);
  CHECK(f.answer_of(0)->lease == second);
}

TEST_CASE("adapter loader: a revoked adapter is given to no request, also before the next step") {
  Fixture f;
  const AdapterUse held = f.load();
  f.rig.revoke(held->lease);

  f.use();

  CHECK_FALSE(f.answers[1].has_value());
  CHECK(f.loader().leases() == std::vector{held->lease});  // the engine ends its requests
  const LeaseId next = f.open();
  f.fill();
  CHECK(f.answer_of(1)->lease == next);
}

TEST_CASE("adapter loader: a file with another content is opened under its own digest") {
  Fixture f;
  const AdapterUse held = f.load();
  f.rig.revoke(held->lease);
  f.write(9.0F);

  f.use();

  const Call call = f.expect<wire::AdapterOpen>();
  const auto opened = required(wire::AdapterOpen::from_json(call.body));
  CHECK(opened.digest.size() == 64);
  CHECK(opened.digest != held->digest.hex());
}

TEST_CASE("adapter loader: a file that is gone at a reload is a missing weight") {
  Fixture f;
  const AdapterUse held = f.load();
  f.rig.revoke(held->lease);
  f.remove();

  f.use();
  f.turn();

  REQUIRE(f.answers[1].has_value());
  CHECK(f.answers[1]->error().code == Errc::MissingWeight);
  CHECK(f.answers[1]->error().scope == FailureScope::Adapter);
}

TEST_CASE("adapter loader: beside running texts a load takes many steps") {
  Fixture f;
  f.use();
  f.resolve();
  f.open();
  const std::uint64_t units = f.rig.engine_gate().units_run();
  f.turn(1us);  // 3 % of this step is too short for a copy
  f.turn(1us);
  CHECK(f.rig.engine_gate().units_run() == units);

  f.turn(10ms);

  CHECK(f.rig.engine_gate().units_run() > units);
}

TEST_CASE("adapter loader: a lease whose answer was lost is given back before the next call") {
  Fixture f;
  f.use();
  f.resolve();
  Call lost = f.expect<wire::AdapterOpen>();
  const LeaseId orphan = f.rig.grant_adapter();
  f.loader().granted(orphan, "law", 1);
  f.refuse(std::move(lost), Errc::ConnectionLost);
  f.rig.clock().advance(kAdapterRetryDelay);

  const Call close = f.expect<wire::AdapterClose>();

  CHECK(required(wire::AdapterClose::from_json(close.body)).lease == orphan);
  f.expect<wire::AdapterOpen>();
}

TEST_CASE("adapter loader: after a reconnect it asks again, and gives unknown leases back") {
  Fixture f;
  const AdapterUse held = f.load();
  const LeaseId orphan = f.rig.grant_adapter();
  f.loader().granted(orphan, "old", 1);

  f.loader().reconnected();

  const Call close = f.expect<wire::AdapterClose>();
  CHECK(required(wire::AdapterClose::from_json(close.body)).lease == orphan);
  f.resolve(2);
  f.use();
  const LeaseId next = f.open();
  f.fill();
  CHECK(f.answer_of(1)->lease == next);
  CHECK(f.answer_of(1)->version == 2);
}

TEST_CASE("adapter loader: the broker's calls load, unload and forget") {
  Fixture f;
  std::optional<Result<control::Payload>> loaded;
  f.loader().on_call(
      std::string(wire::AdapterLoad::kMethod),
      wire::AdapterLoad{
          .adapter = {"law"}, .worker = "w", .tenant = TenantId{"t"}, .request_id = {"r"}}
          .to_json(),
      [&](Result<control::Payload> reply) { loaded = std::move(reply); });
  f.resolve();
  f.open();
  CHECK_FALSE(loaded.has_value());
  f.fill();
  CHECK_FALSE(loaded.has_value());  // the engine's thread may not use the connection
  f.connection.poll();
  REQUIRE(loaded.has_value());
  CHECK(loaded->has_value());

  f.loader().on_call(std::string(wire::AdaptersChanged::kMethod), wire::Empty{}.to_json(),
                     [](Result<control::Payload>) {});
  f.resolve();
  f.loader().on_call(
      std::string(wire::AdapterUnload::kMethod),
      wire::AdapterUnload{.adapter = {"law"}, .worker = "w", .request_id = {"r"}}.to_json(),
      [](Result<control::Payload>) {});
  f.expect<wire::AdapterClose>();
  CHECK(f.loader().counts().loaded == 0);
}

TEST_CASE("adapter loader: an adapter leaves when the broker asks for its memory") {
  Fixture f;
  AdapterUse held = f.load();
  const wire::AdaptersYield asked{.tenant = {"u"}, .leases = {held->lease}, .size_bytes = 1};
  const auto ask = [&] {
    f.loader().on_call(std::string(wire::AdaptersYield::kMethod), asked.to_json(),
                       [](Result<control::Payload>) {});
    f.turn();
  };
  ask();
  CHECK(f.loader().counts().loaded == 1);

  held.reset();
  f.answers.clear();
  ask();

  const Call close = f.expect<wire::AdapterClose>();
  CHECK(required(wire::AdapterClose::from_json(close.body)).lease == asked.leases.front());
}

}  // namespace leasehold
