/// Loads of a real file into real extents, with a broker played by the test. The tests run the
/// engine's loop by hand.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>

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
#include "worker/adapter/adapter_loader.hpp"

namespace leasehold::testing {

inline constexpr std::uint64_t kLoaderExtentBytes = 16u << 20;
inline constexpr std::uint32_t kRank = 4;
/// The matrices of all layers are more than one slice, in one extent.
inline constexpr std::uint32_t kLargeRank = 100;
/// They are more slices than a load reads ahead, in one extent.
inline constexpr std::uint32_t kLargestRank = 700;

/// An adapter of q and down of the first `n_layers` layers.
inline std::string adapter_bytes(const ModelConfig& model, float alpha, std::uint32_t rank = kRank,
                                 std::uint32_t n_layers = 1) {
  GgufBuilder builder;
  builder.set("general.type", "adapter").set("general.architecture", model.architecture);
  builder.set("adapter.type", "lora").set("adapter.lora.alpha", alpha);
  const std::uint64_t heads = std::uint64_t{model.n_heads} * model.layers[0].head_dim;
  const auto add = [&](const std::string& weight, std::uint64_t n_in, std::uint64_t n_out) {
    builder.tensor(weight + ".lora_a", TensorType::F32, {n_in, rank});
    builder.tensor(weight + ".lora_b", TensorType::F32, {rank, n_out});
  };
  for (std::uint32_t l = 0; l < n_layers; ++l) {
    add(fmt::format("blk.{}.attn_q.weight", l), model.n_embd, heads);
    add(fmt::format("blk.{}.ffn_down.weight", l), model.layers[l].n_ff, model.n_embd);
  }
  return builder.bytes();
}

/// A call that the loader made.
struct LoaderCall {
  std::string method;
  control::Json body;
  control::Peer::ReplyHandler reply;
};

class LoaderFixture {
 public:
  explicit LoaderFixture(GateProbe* probe = nullptr)
      : rig({.extent_bytes = kLoaderExtentBytes, .probe = probe}), loader_(dependencies()) {
    write(8.0F);
    loader_.set_extent_bytes(kLoaderExtentBytes);
  }
  ~LoaderFixture() { ::close(directory_fd_); }

  void write(float alpha) { write(adapter_bytes(rig.config(), alpha)); }
  void write(const std::string& bytes) {
    std::ofstream(directory_.file("law.gguf"), std::ios::binary) << bytes;
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
  LoaderCall next_call() {
    for (int i = 0; calls_.empty() && i < 1'000; ++i) turn();
    REQUIRE_FALSE(calls_.empty());
    LoaderCall call = std::move(calls_.front());
    calls_.pop_front();
    return call;
  }
  template <class Message>
  LoaderCall expect() {
    LoaderCall call = next_call();
    REQUIRE(call.method == Message::kMethod);
    return call;
  }
  template <class Message>
  void answer(LoaderCall call, const Message& message) {
    call.reply(control::Payload{.body = message.to_json(), .fds = {}});
    turn();
  }
  void refuse(LoaderCall call, Errc code) {
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
    CHECK(call.size_bytes == kLoaderExtentBytes);
    const LeaseId lease = rig.grant_adapter();
    loader_.granted(lease, "law", call.version);
    answer(expect<wire::AdapterOpen>(), wire::AdapterOpened{.lease = lease});
    return lease;
  }
  const LoaderCall& peek() {
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
    AdapterFile file =
        required(AdapterFile::open(directory_fd_, "law.gguf", rig.config(), kLargestRank));
    const Mapping memory = required(Mapping::map(rig.extents(lease).begin()->second.fd(),
                                                 kLoaderExtentBytes, MapAccess::ReadOnly));
    const Leased<const std::byte> base = rig.engine().memory().extents(lease).front().base;
    for (const AdapterPiece& piece : required(file.layout(kLoaderExtentBytes)).pieces) {
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
            .directory = {.fd = directory_fd_, .max_rank = kLargestRank},
            .copy = {.memory = &rig.engine().memory(),
                     .backend = &rig.backend(),
                     .gate = &rig.engine_gate(),
                     .table = &rig.table(),
                     .revocations = &rig.table().revocations(WorkerId{0}),
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
  std::deque<LoaderCall> calls_;
  AdapterLoader loader_;
};

}  // namespace leasehold::testing
